-- CreateEnum
CREATE TYPE "batch_status" AS ENUM ('draft', 'pending_approval', 'processing', 'completed', 'partially_completed', 'failed', 'cancelled');

-- CreateEnum
CREATE TYPE "recipient_status" AS ENUM ('pending', 'processing', 'success', 'failed', 'cancelled');

-- AlterTable
ALTER TABLE "approval_verdict" ADD COLUMN     "batch_id" INTEGER,
ALTER COLUMN "payout_id" DROP NOT NULL;

-- AlterTable
ALTER TABLE "operator_request" ADD COLUMN     "recipient_id" BIGINT;

-- CreateTable
CREATE TABLE "batch" (
    "id" SERIAL NOT NULL,
    "merchant_id" INTEGER NOT NULL,
    "title" TEXT,
    "payment_method" "provider",
    "status" "batch_status" NOT NULL DEFAULT 'draft',
    "recipient_count" INTEGER NOT NULL DEFAULT 0,
    "total_amount" BIGINT NOT NULL DEFAULT 0,
    "processing_count" INTEGER NOT NULL DEFAULT 0,
    "succeeded_count" INTEGER NOT NULL DEFAULT 0,
    "failed_count" INTEGER NOT NULL DEFAULT 0,
    "cancelled_count" INTEGER NOT NULL DEFAULT 0,
    "paid_amount" BIGINT NOT NULL DEFAULT 0,
    "returned_amount" BIGINT NOT NULL DEFAULT 0,
    "retry_of_id" INTEGER,
    "approval" "approval_status" NOT NULL DEFAULT 'not_required',
    "approval_digest" BYTEA,
    "approval_expires_at" TIMESTAMPTZ(3),
    "approvals_required" SMALLINT NOT NULL DEFAULT 0,
    "maker" TEXT NOT NULL,
    "maker_member_ids" INTEGER[] DEFAULT ARRAY[]::INTEGER[],
    "made_for" TEXT,
    "added_for" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "started_at" TIMESTAMPTZ(3),
    "cancel_asked_at" TIMESTAMPTZ(3),
    "processed_at" TIMESTAMPTZ(3),
    "turn_at" TIMESTAMPTZ(6),

    CONSTRAINT "batch_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "batch_recipient" (
    "id" BIGSERIAL NOT NULL,
    "merchant_id" INTEGER NOT NULL,
    "batch_id" INTEGER NOT NULL,
    "name" TEXT NOT NULL,
    "account" TEXT NOT NULL,
    "amount" BIGINT NOT NULL,
    "payment_method" "provider" NOT NULL,
    "status" "recipient_status" NOT NULL DEFAULT 'pending',
    "operator_reference" TEXT,
    "failure_reason" TEXT,
    "failure_message" TEXT,
    "settled_amount" BIGINT,
    "evidence_source" TEXT,
    "sent_at" TIMESTAMPTZ(3),
    "settled_at" TIMESTAMPTZ(3),
    "reversed_at" TIMESTAMPTZ(3),

    CONSTRAINT "batch_recipient_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "batch_merchant_id_id_idx" ON "batch"("merchant_id", "id");

-- CreateIndex
CREATE UNIQUE INDEX "batch_made_for_merchant_id_key" ON "batch"("made_for", "merchant_id");

-- Last of its table: between indexes that promise the same the planner takes the newest.
-- CreateIndex
CREATE UNIQUE INDEX "batch_id_merchant_id_key" ON "batch"("id", "merchant_id");

-- CreateIndex
CREATE INDEX "batch_recipient_batch_id_id_idx" ON "batch_recipient"("batch_id", "id");

-- CreateIndex
CREATE UNIQUE INDEX "batch_recipient_id_merchant_id_key" ON "batch_recipient"("id", "merchant_id");

-- CreateIndex
CREATE UNIQUE INDEX "approval_verdict_batch_id_member_id_verdict_key" ON "approval_verdict"("batch_id", "member_id", "verdict");

-- AddForeignKey
ALTER TABLE "batch" ADD CONSTRAINT "batch_merchant_id_fkey" FOREIGN KEY ("merchant_id") REFERENCES "merchant"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "batch" ADD CONSTRAINT "batch_retry_of_id_merchant_id_fkey" FOREIGN KEY ("retry_of_id", "merchant_id") REFERENCES "batch"("id", "merchant_id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "batch_recipient" ADD CONSTRAINT "batch_recipient_batch_id_merchant_id_fkey" FOREIGN KEY ("batch_id", "merchant_id") REFERENCES "batch"("id", "merchant_id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "approval_verdict" ADD CONSTRAINT "approval_verdict_batch_id_merchant_id_fkey" FOREIGN KEY ("batch_id", "merchant_id") REFERENCES "batch"("id", "merchant_id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "operator_request" ADD CONSTRAINT "operator_request_recipient_id_merchant_id_fkey" FOREIGN KEY ("recipient_id", "merchant_id") REFERENCES "batch_recipient"("id", "merchant_id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- Below: written by hand. What the schema language cannot say.

-- Bounds that hold whatever the code does.
ALTER TABLE "batch"
  ADD CONSTRAINT "batch_title" CHECK (char_length("title") BETWEEN 1 AND 200),
  ADD CONSTRAINT "batch_recipient_count" CHECK ("recipient_count" BETWEEN 0 AND 10000),
  ADD CONSTRAINT "batch_counts" CHECK (
    least("processing_count", "succeeded_count", "failed_count", "cancelled_count") >= 0
    AND "processing_count" + "succeeded_count" + "failed_count" + "cancelled_count" <= "recipient_count"),
  ADD CONSTRAINT "batch_amounts" CHECK ("returned_amount" >= 0 AND "returned_amount" <= "paid_amount" AND "paid_amount" <= "total_amount"),
  -- It ends when the last of its recipients has, and as they did.
  ADD CONSTRAINT "batch_status" CHECK (
    CASE WHEN "status" IN ('draft', 'pending_approval')
      THEN "processing_count" + "succeeded_count" + "failed_count" + "cancelled_count" = 0 AND "started_at" IS NULL
        AND "cancel_asked_at" IS NULL AND "processed_at" IS NULL
    WHEN "status" = 'processing' THEN "started_at" IS NOT NULL AND "processed_at" IS NULL
      AND "succeeded_count" + "failed_count" + "cancelled_count" < "recipient_count"
    ELSE "processed_at" IS NOT NULL AND "succeeded_count" + "failed_count" + "cancelled_count" = "recipient_count"
      AND CASE "status" WHEN 'completed' THEN "started_at" IS NOT NULL AND "succeeded_count" = "recipient_count"
        WHEN 'failed' THEN "started_at" IS NOT NULL AND "failed_count" = "recipient_count"
        WHEN 'partially_completed' THEN "started_at" IS NOT NULL AND "cancelled_count" = 0
          AND "succeeded_count" > 0 AND "failed_count" > 0
        ELSE "cancel_asked_at" IS NOT NULL END END),
  ADD CONSTRAINT "batch_approval_digest" CHECK (
    ("approval_digest" IS NOT NULL) = ("approval" <> 'not_required') AND ("approval_digest" IS NULL OR length("approval_digest") = 32)),
  ADD CONSTRAINT "batch_approval_expires_at" CHECK (("approval_expires_at" IS NOT NULL) = ("approval" <> 'not_required')),
  ADD CONSTRAINT "batch_approvals_required" CHECK (
    "approvals_required" BETWEEN 0 AND 3 AND ("approvals_required" > 0) = ("approval" <> 'not_required')),
  -- Nothing is sent that a person has yet to approve, or did not.
  ADD CONSTRAINT "batch_approval" CHECK (
    ("status" <> 'pending_approval' OR "approval" = 'pending')
    AND CASE "approval" WHEN 'pending' THEN "status" IN ('pending_approval', 'cancelled')
      WHEN 'rejected' THEN "status" = 'cancelled' WHEN 'expired' THEN "status" = 'cancelled' ELSE true END);
ALTER TABLE "batch_recipient"
  ADD CONSTRAINT "batch_recipient_name" CHECK (char_length("name") BETWEEN 1 AND 200),
  ADD CONSTRAINT "batch_recipient_account" CHECK ("account" ~ '^\+223[2-9][0-9]{7}$'),
  ADD CONSTRAINT "batch_recipient_amount" CHECK ("amount" >= 1000),
  ADD CONSTRAINT "batch_recipient_settled_amount" CHECK (
    ("settled_amount" IS NOT NULL) = ("status" = 'success') AND ("settled_amount" IS NULL OR "settled_amount" BETWEEN 1 AND "amount")),
  ADD CONSTRAINT "batch_recipient_sent_at" CHECK (("sent_at" IS NULL) = ("status" IN ('pending', 'cancelled'))),
  ADD CONSTRAINT "batch_recipient_settled_at" CHECK (("settled_at" IS NULL) = ("status" IN ('pending', 'processing'))),
  ADD CONSTRAINT "batch_recipient_failure_reason" CHECK (("failure_reason" IS NOT NULL) = ("status" = 'failed')),
  ADD CONSTRAINT "batch_recipient_reversed_at" CHECK ("reversed_at" IS NULL OR "status" = 'success');
ALTER TABLE "approval_verdict"
  ADD CONSTRAINT "approval_verdict_subject" CHECK (num_nonnulls("payout_id", "batch_id") = 1);
ALTER TABLE "operator_request"
  DROP CONSTRAINT "operator_request_subject",
  ADD CONSTRAINT "operator_request_subject" CHECK (num_nonnulls("transaction_id", "payout_id", "recipient_id") = 1);

CREATE UNIQUE INDEX "operator_request_recipient" ON "operator_request" ("recipient_id") WHERE "recipient_id" IS NOT NULL;
-- Who is still to be sent something. Not by status: what is settled then stays where it is in every index.
CREATE INDEX "batch_recipient_unsent" ON "batch_recipient" ("payment_method", "batch_id", "id") WHERE "sent_at" IS NULL;
CREATE INDEX "batch_processing" ON "batch" ("id") WHERE "status" = 'processing';
CREATE INDEX "batch_awaiting" ON "batch" ("approval_expires_at") WHERE "status" = 'pending_approval';
CREATE INDEX "batch_waiting" ON "batch" ("merchant_id", "approval_expires_at", "id") WHERE "status" = 'pending_approval';
-- Those who failed are paid anew by one batch, until that is cancelled.
CREATE UNIQUE INDEX "batch_retry" ON "batch" ("retry_of_id") WHERE "status" <> 'cancelled';

ALTER TABLE "batch" SET (fillfactor = 50);
ALTER TABLE "batch_recipient" SET (fillfactor = 70);

SELECT wall_in(name) FROM unnest(ARRAY['batch', 'batch_recipient']::regclass[]) AS name;
GRANT SELECT ON "batch", "batch_recipient" TO payments_service, payments_merchant;

-- Lifecycles: the rows of `states.ts`.
INSERT INTO "lifecycle_move" ("lifecycle", "from_status", "to_status") VALUES
  ('batch', 'draft', 'pending_approval'),
  ('batch', 'draft', 'processing'),
  ('batch', 'draft', 'cancelled'),
  ('batch', 'pending_approval', 'processing'),
  ('batch', 'pending_approval', 'cancelled'),
  ('batch', 'processing', 'completed'),
  ('batch', 'processing', 'partially_completed'),
  ('batch', 'processing', 'failed'),
  ('batch', 'processing', 'cancelled'),
  ('recipient', 'pending', 'processing'),
  ('recipient', 'pending', 'cancelled'),
  ('recipient', 'processing', 'success'),
  ('recipient', 'processing', 'failed');

-- Each moves along its lifecycle only (the argument), and what it is about never changes; a draft may still grow.
CREATE FUNCTION guard_status() RETURNS trigger LANGUAGE plpgsql SET enable_nestloop = off AS $$
DECLARE
  moved record;
BEGIN
  SELECT d.id, d.status AS was, i.status AS becomes INTO moved
  FROM deleted d JOIN inserted i USING (id)
  WHERE d.status <> i.status AND (d.status::text, i.status::text) NOT IN (
    SELECT m.from_status, m.to_status FROM public.lifecycle_move m WHERE m.lifecycle = TG_ARGV[0])
  LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION '% %: % never becomes %', TG_ARGV[0], moved.id, moved.was, moved.becomes
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION guard_batch_approval() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (OLD.approval, NEW.approval) = ('not_required', 'pending') AND OLD.status = 'draft' THEN RETURN NEW; END IF;
  IF EXISTS (
    SELECT FROM public.lifecycle_move m
    WHERE m.lifecycle = 'approval' AND m.from_status = OLD.approval::text AND m.to_status = NEW.approval::text
  ) THEN RETURN NEW; END IF;
  RAISE EXCEPTION 'batch %: % (approval) never becomes %', OLD.id, OLD.approval, NEW.approval
    USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE FUNCTION guard_facts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% %: what it is about never changes', TG_TABLE_NAME, OLD.id USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER "batch_moved" AFTER UPDATE ON "batch" REFERENCING NEW TABLE AS inserted OLD TABLE AS deleted
  FOR EACH STATEMENT EXECUTE FUNCTION guard_status('batch');
CREATE TRIGGER "batch_approval" BEFORE UPDATE OF "approval" ON "batch" FOR EACH ROW WHEN (OLD.approval <> NEW.approval)
  EXECUTE FUNCTION guard_batch_approval();
CREATE TRIGGER "batch_guard" BEFORE UPDATE ON "batch" FOR EACH ROW WHEN (
  (OLD.id, OLD.merchant_id, OLD.title, OLD.payment_method, OLD.retry_of_id, OLD.maker, OLD.made_for, OLD.created_at)
  IS DISTINCT FROM
  (NEW.id, NEW.merchant_id, NEW.title, NEW.payment_method, NEW.retry_of_id, NEW.maker, NEW.made_for, NEW.created_at)
  OR OLD.status <> 'draft' AND (OLD.recipient_count, OLD.total_amount, OLD.maker_member_ids, OLD.added_for, OLD.approval_digest,
    OLD.approval_expires_at, OLD.approvals_required)
  IS DISTINCT FROM (NEW.recipient_count, NEW.total_amount, NEW.maker_member_ids, NEW.added_for, NEW.approval_digest,
    NEW.approval_expires_at, NEW.approvals_required)
) EXECUTE FUNCTION guard_facts();
CREATE TRIGGER "batch_kept" BEFORE DELETE OR TRUNCATE ON "batch" FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER "batch_recipient_moved" AFTER UPDATE ON "batch_recipient" REFERENCING NEW TABLE AS inserted OLD TABLE AS deleted
  FOR EACH STATEMENT EXECUTE FUNCTION guard_status('recipient');
CREATE TRIGGER "batch_recipient_guard" BEFORE UPDATE ON "batch_recipient" FOR EACH ROW WHEN (
  (OLD.id, OLD.merchant_id, OLD.batch_id, OLD.name, OLD.account, OLD.amount, OLD.payment_method)
  IS DISTINCT FROM (NEW.id, NEW.merchant_id, NEW.batch_id, NEW.name, NEW.account, NEW.amount, NEW.payment_method)
) EXECUTE FUNCTION guard_facts();
CREATE TRIGGER "batch_recipient_kept" BEFORE DELETE OR TRUNCATE ON "batch_recipient"
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

REVOKE EXECUTE ON FUNCTION guard_status, guard_batch_approval, guard_facts FROM PUBLIC;
