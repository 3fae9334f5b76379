-- Refuses a statement, by any role: in every table below rows are never deleted, and in those with a trigger
-- for UPDATE never changed.
CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% on %: not allowed on this table', TG_OP, TG_TABLE_NAME
    USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE OR REPLACE TRIGGER "approval_verdict_insert_only" BEFORE UPDATE OR DELETE OR TRUNCATE
  ON "approval_verdict"
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE OR REPLACE TRIGGER "audit_entry_insert_only" BEFORE UPDATE OR DELETE OR TRUNCATE ON "audit_entry"
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE OR REPLACE TRIGGER "audit_head_kept" BEFORE DELETE OR TRUNCATE ON "audit_head" FOR EACH STATEMENT
  EXECUTE FUNCTION refuse_change();

CREATE OR REPLACE TRIGGER "audit_link_insert_only" BEFORE UPDATE OR DELETE OR TRUNCATE ON "audit_link"
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE OR REPLACE TRIGGER "batch_kept" BEFORE DELETE OR TRUNCATE ON "batch" FOR EACH STATEMENT
  EXECUTE FUNCTION refuse_change();

CREATE OR REPLACE TRIGGER "batch_recipient_kept" BEFORE DELETE OR TRUNCATE ON "batch_recipient"
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE OR REPLACE TRIGGER "event_insert_only" BEFORE DELETE OR TRUNCATE ON "event" FOR EACH STATEMENT
  EXECUTE FUNCTION refuse_change();

CREATE OR REPLACE TRIGGER "ledger_entry_insert_only" BEFORE UPDATE OR DELETE OR TRUNCATE ON "ledger_entry"
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE OR REPLACE TRIGGER "operator_callback_insert_only" BEFORE UPDATE OR TRUNCATE
  ON "operator_callback"
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE OR REPLACE TRIGGER "operator_exchange_insert_only" BEFORE UPDATE OR TRUNCATE
  ON "operator_exchange"
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE OR REPLACE TRIGGER "operator_orphan_kept" BEFORE DELETE OR TRUNCATE ON "operator_orphan"
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE OR REPLACE TRIGGER "payout_kept" BEFORE DELETE OR TRUNCATE ON "payout" FOR EACH STATEMENT
  EXECUTE FUNCTION refuse_change();
