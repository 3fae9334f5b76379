-- A rest of reserved money is withheld, and never again available by the word of the operator alone. Entries
-- of earlier commits stay as they are.
ALTER TABLE "ledger_entry" ADD CONSTRAINT "ledger_entry_no_release" CHECK (step <> 'release') NOT VALID;

-- An exception may be about any payment: more was confirmed for a collection, or less for a payment out. Two
-- people decide: the first one proposes, the second one agrees.
ALTER TABLE "settlement_exception"
  ALTER COLUMN "transaction_id" DROP NOT NULL,
  ADD COLUMN "payout_id" bigint,
  ADD COLUMN "recipient_id" bigint,
  ADD COLUMN "proposed_state" settlement_exception_state,
  ADD COLUMN "proposed_by" text,
  ADD COLUMN "proposed_reason" text,
  ADD COLUMN "proposed_at" timestamptz(3),
  DROP CONSTRAINT "settlement_exception_amounts",
  ADD CONSTRAINT "settlement_exception_amounts" CHECK (requested_amount > 0 AND confirmed_amount > 0
    AND confirmed_amount <> requested_amount AND confirmed_amount <= '9007199254740991'::bigint
    AND (transaction_id IS NOT NULL OR confirmed_amount < requested_amount)),
  ADD CONSTRAINT "settlement_exception_subject" CHECK (num_nonnulls(transaction_id, payout_id,
    recipient_id) = 1),
  ADD CONSTRAINT "settlement_exception_proposed" CHECK (num_nonnulls(proposed_state, proposed_by,
    proposed_reason, proposed_at) IN (0, 4) AND proposed_state <> 'open'),
  ADD CONSTRAINT "settlement_exception_proposed_words" CHECK (char_length(proposed_by) BETWEEN 1 AND 200
    AND char_length(proposed_reason) BETWEEN 1 AND 1000),
  ADD CONSTRAINT "settlement_exception_two_people" CHECK (decided_by = 'operator'
    OR lower(proposed_by) <> lower(decided_by)),
  ADD CONSTRAINT "settlement_exception_payout_id_merchant_id_fkey" FOREIGN KEY (payout_id, merchant_id)
    REFERENCES payout(id, merchant_id) ON UPDATE CASCADE ON DELETE RESTRICT,
  ADD CONSTRAINT "settlement_exception_recipient_id_merchant_id_fkey" FOREIGN KEY (recipient_id, merchant_id)
    REFERENCES batch_recipient(id, merchant_id) ON UPDATE CASCADE ON DELETE RESTRICT;
CREATE UNIQUE INDEX settlement_exception_payout_id_merchant_id_key ON "settlement_exception" (payout_id,
  merchant_id);
CREATE UNIQUE INDEX settlement_exception_recipient_id_merchant_id_key ON "settlement_exception"
  (recipient_id, merchant_id);
CREATE INDEX settlement_exception_open ON "settlement_exception" (id) WHERE (state =
  'open'::settlement_exception_state);
-- A merchant sees how much of a payment is withheld, and not who decides.
GRANT SELECT ("id", "merchant_id", "transaction_id", "payout_id", "recipient_id", "requested_amount",
  "confirmed_amount", "state", "created_at") ON "settlement_exception" TO payments_merchant;

-- A reversal returns also the money that people found to be paid beyond the amount that was confirmed.
ALTER TABLE "batch"
  DROP CONSTRAINT "batch_amounts",
  ADD CONSTRAINT "batch_amounts" CHECK (returned_amount >= 0 AND returned_amount <= total_amount
    AND paid_amount <= total_amount);
