-- An operator may state that it paid out less than was asked: the rest is withheld until people decide. New
-- words of a type can be used only after their commit, so that they have a migration of their own.
ALTER TYPE ledger_step ADD VALUE 'withhold';
ALTER TYPE ledger_step ADD VALUE 'withheld_credit';
ALTER TYPE ledger_step ADD VALUE 'withheld_post';
ALTER TYPE settlement_exception_state ADD VALUE 'paid';
