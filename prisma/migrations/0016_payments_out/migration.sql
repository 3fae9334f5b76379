-- CreateEnum
CREATE TYPE "payout_status" AS ENUM ('pending', 'processing', 'completed', 'failed', 'cancelled');

-- CreateEnum
CREATE TYPE "approval_status" AS ENUM ('not_required', 'pending', 'approved', 'rejected', 'expired');

-- CreateEnum
CREATE TYPE "payout_method" AS ENUM ('OperatorA', 'OperatorB', 'OperatorC', 'OperatorD', 'BankTransfer');

-- CreateEnum
CREATE TYPE "beneficiary_category" AS ENUM ('supplier', 'employee', 'partner', 'customer');

-- AlterEnum
ALTER TYPE "operator_request_kind" ADD VALUE 'disburse';

-- AlterEnum
-- This migration adds more than one value to an enum.
-- With PostgreSQL versions 11 and earlier, this is not possible
-- in a single migration. This can be worked around by creating
-- multiple migrations, each migration adding only one value to
-- the enum.


ALTER TYPE "ledger_step" ADD VALUE 'release';
ALTER TYPE "ledger_step" ADD VALUE 'recover';

-- DropIndex
DROP INDEX "movement_merchant_id_id_idx";

-- AlterTable
ALTER TABLE "merchant" ADD COLUMN     "approval_threshold" BIGINT NOT NULL DEFAULT 0,
ADD COLUMN     "payouts_require_approval" BOOLEAN NOT NULL DEFAULT false;

-- AlterTable
ALTER TABLE "transaction" ADD COLUMN     "refund_of_id" BIGINT;

-- AlterTable
ALTER TABLE "operator_request" ADD COLUMN     "payout_id" BIGINT,
ALTER COLUMN "transaction_id" DROP NOT NULL;

-- AlterTable
ALTER TABLE "merchant_balance" ADD COLUMN     "receivable" BIGINT NOT NULL DEFAULT 0;

-- AlterTable
ALTER TABLE "audit_proven" ADD COLUMN     "receivable" BIGINT NOT NULL DEFAULT 0;

-- CreateTable
CREATE TABLE "payout" (
    "id" BIGSERIAL NOT NULL,
    "merchant_id" INTEGER NOT NULL,
    "payment_method" "provider" NOT NULL,
    "destination_phone" TEXT NOT NULL,
    "amount" BIGINT NOT NULL,
    "status" "payout_status" NOT NULL DEFAULT 'pending',
    "reference" TEXT NOT NULL,
    "scheduled_at" TIMESTAMPTZ(3),
    "send_at" TIMESTAMPTZ(3) NOT NULL,
    "approval" "approval_status" NOT NULL,
    "approval_digest" BYTEA,
    "approval_expires_at" TIMESTAMPTZ(3),
    "maker" TEXT NOT NULL,
    "beneficiary_id" INTEGER,
    "beneficiary_name" TEXT,
    "request_data" JSONB NOT NULL,
    "operator_reference" TEXT,
    "failure_reason" TEXT,
    "failure_message" TEXT,
    "settled_amount" BIGINT,
    "evidence_source" TEXT,
    "settled_at" TIMESTAMPTZ(3),
    "reversed_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "payout_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "payout_count" (
    "merchant_id" INTEGER NOT NULL,
    "payment_method" "provider" NOT NULL,
    "status" "payout_status" NOT NULL,
    "n" BIGINT NOT NULL,

    CONSTRAINT "payout_count_pkey" PRIMARY KEY ("merchant_id","payment_method","status")
);

-- CreateTable
CREATE TABLE "beneficiary" (
    "id" SERIAL NOT NULL,
    "merchant_id" INTEGER NOT NULL,
    "name" TEXT NOT NULL,
    "account" TEXT NOT NULL,
    "payment_method" "payout_method" NOT NULL,
    "category" "beneficiary_category" NOT NULL DEFAULT 'customer',
    "is_active" BOOLEAN NOT NULL DEFAULT true,
    "made_for" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "beneficiary_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "payout_merchant_id_id_idx" ON "payout"("merchant_id", "id");

-- CreateIndex
CREATE UNIQUE INDEX "payout_reference_merchant_id_key" ON "payout"("reference", "merchant_id");

-- CreateIndex
CREATE INDEX "beneficiary_merchant_id_id_idx" ON "beneficiary"("merchant_id", "id");

-- CreateIndex
CREATE UNIQUE INDEX "beneficiary_made_for_merchant_id_key" ON "beneficiary"("made_for", "merchant_id");

-- CreateIndex
CREATE UNIQUE INDEX "operator_request_payout_id_key" ON "operator_request"("payout_id");

-- CreateIndex
CREATE INDEX "movement_merchant_id_created_at_id_idx" ON "movement"("merchant_id", "created_at", "id");

-- Last of their tables: between indexes that promise the same the planner takes the newest.
-- CreateIndex
CREATE UNIQUE INDEX "payout_id_merchant_id_key" ON "payout"("id", "merchant_id");

-- CreateIndex
CREATE UNIQUE INDEX "beneficiary_id_merchant_id_key" ON "beneficiary"("id", "merchant_id");

-- AddForeignKey
ALTER TABLE "transaction" ADD CONSTRAINT "transaction_merchant_id_refund_of_id_fkey" FOREIGN KEY ("merchant_id", "refund_of_id") REFERENCES "transaction"("merchant_id", "id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "payout" ADD CONSTRAINT "payout_merchant_id_fkey" FOREIGN KEY ("merchant_id") REFERENCES "merchant"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "payout" ADD CONSTRAINT "payout_beneficiary_id_merchant_id_fkey" FOREIGN KEY ("beneficiary_id", "merchant_id") REFERENCES "beneficiary"("id", "merchant_id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "beneficiary" ADD CONSTRAINT "beneficiary_merchant_id_fkey" FOREIGN KEY ("merchant_id") REFERENCES "merchant"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "operator_request" ADD CONSTRAINT "operator_request_payout_id_merchant_id_fkey" FOREIGN KEY ("payout_id", "merchant_id") REFERENCES "payout"("id", "merchant_id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- Below: written by hand. What the schema language cannot say. What money out stands on; the verbs of payouts follow in a
-- migration of their own, for no value of an enum serves in the transaction that adds it.

-- Bounds that hold whatever the code does. A refund may give back a small rest.
ALTER TABLE "merchant" ADD CONSTRAINT "merchant_approval_threshold" CHECK ("approval_threshold" >= 0);
ALTER TABLE "transaction"
  DROP CONSTRAINT "transaction_amount",
  ADD CONSTRAINT "transaction_amount" CHECK (
    CASE "transaction_type" WHEN 'pay' THEN "amount" >= 100
      WHEN 'deposit' THEN "amount" >= CASE WHEN "refund_of_id" IS NULL THEN 1000 ELSE 1 END ELSE "amount" = 0 END
  ),
  ADD CONSTRAINT "transaction_refund_of_id" CHECK ("refund_of_id" IS NULL OR "transaction_type" = 'deposit');
ALTER TABLE "operator_request"
  ADD CONSTRAINT "operator_request_subject" CHECK (num_nonnulls("transaction_id", "payout_id") = 1);
ALTER TABLE "merchant_balance" ADD CONSTRAINT "merchant_balance_receivable" CHECK ("receivable" >= 0);
ALTER TABLE "payout"
  ADD CONSTRAINT "payout_amount" CHECK ("amount" >= 1000),
  ADD CONSTRAINT "payout_destination_phone" CHECK ("destination_phone" ~ '^\+223[2-9][0-9]{7}$'),
  ADD CONSTRAINT "payout_reference" CHECK (char_length("reference") BETWEEN 1 AND 100),
  ADD CONSTRAINT "payout_send_at" CHECK ("scheduled_at" IS NULL OR "send_at" = "scheduled_at"),
  ADD CONSTRAINT "payout_settled_amount" CHECK (
    ("settled_amount" IS NOT NULL) = ("status" = 'completed') AND ("settled_amount" IS NULL OR "settled_amount" > 0)
  ),
  ADD CONSTRAINT "payout_reversed_at" CHECK ("reversed_at" IS NULL OR "status" = 'completed'),
  ADD CONSTRAINT "payout_approval_digest" CHECK (
    ("approval_digest" IS NOT NULL) = ("approval" <> 'not_required') AND ("approval_digest" IS NULL OR length("approval_digest") = 32)
  ),
  ADD CONSTRAINT "payout_approval_expires_at" CHECK (("approval_expires_at" IS NOT NULL) = ("approval" <> 'not_required')),
  -- Nothing is sent that a person has yet to approve, or did not.
  ADD CONSTRAINT "payout_approval" CHECK (
    CASE "approval" WHEN 'pending' THEN "status" IN ('pending', 'cancelled')
      WHEN 'rejected' THEN "status" = 'cancelled' WHEN 'expired' THEN "status" = 'cancelled' ELSE true END
  );
ALTER TABLE "beneficiary"
  ADD CONSTRAINT "beneficiary_name" CHECK (char_length("name") BETWEEN 1 AND 200),
  ADD CONSTRAINT "beneficiary_account" CHECK (
    CASE "payment_method" WHEN 'BankTransfer' THEN char_length("account") BETWEEN 5 AND 34
      ELSE "account" ~ '^\+223[2-9][0-9]{7}$' END
  );

-- The refunds of a collection, what may be sent now, and what waits for a person.
CREATE INDEX "transaction_refund" ON "transaction" ("refund_of_id") WHERE "refund_of_id" IS NOT NULL;
CREATE INDEX "payout_due" ON "payout" ("payment_method", "send_at", "id")
  WHERE "status" = 'pending' AND "approval" IN ('not_required', 'approved');
CREATE INDEX "payout_awaiting" ON "payout" ("approval_expires_at") WHERE "approval" = 'pending' AND "status" = 'pending';

ALTER TABLE "payout" SET (fillfactor = 70);
ALTER TABLE "payout_count" SET (fillfactor = 50);

-- Lifecycles: the rows of `states.ts`.
INSERT INTO "lifecycle_move" ("lifecycle", "from_status", "to_status") VALUES
  ('payout', 'pending', 'processing'),
  ('payout', 'pending', 'failed'),
  ('payout', 'pending', 'cancelled'),
  ('payout', 'processing', 'completed'),
  ('payout', 'processing', 'failed'),
  ('approval', 'pending', 'approved'),
  ('approval', 'pending', 'rejected'),
  ('approval', 'pending', 'expired');

-- What a transaction is about never changes, and so which one it refunds.
DROP TRIGGER "transaction_guard" ON "transaction";
CREATE TRIGGER "transaction_guard" BEFORE UPDATE ON "transaction" FOR EACH ROW WHEN (
  (OLD.id, OLD.merchant_id, OLD.transaction_type, OLD.payment_method, OLD.customer_phone, OLD.amount, OLD.reference,
    OLD.refund_of_id)
  IS DISTINCT FROM
  (NEW.id, NEW.merchant_id, NEW.transaction_type, NEW.payment_method, NEW.customer_phone, NEW.amount, NEW.reference,
    NEW.refund_of_id)
) EXECUTE FUNCTION guard_transaction();

-- A payout moves along its lifecycles only, and what it is about never changes.
CREATE FUNCTION guard_payout() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'payout %: what it is about never changes', OLD.id USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER "payout_guard" BEFORE UPDATE ON "payout" FOR EACH ROW WHEN (
  (OLD.id, OLD.merchant_id, OLD.payment_method, OLD.destination_phone, OLD.amount, OLD.reference, OLD.scheduled_at, OLD.send_at,
    OLD.approval_digest, OLD.approval_expires_at, OLD.maker, OLD.beneficiary_id, OLD.beneficiary_name, OLD.request_data,
    OLD.created_at)
  IS DISTINCT FROM
  (NEW.id, NEW.merchant_id, NEW.payment_method, NEW.destination_phone, NEW.amount, NEW.reference, NEW.scheduled_at, NEW.send_at,
    NEW.approval_digest, NEW.approval_expires_at, NEW.maker, NEW.beneficiary_id, NEW.beneficiary_name, NEW.request_data,
    NEW.created_at)
) EXECUTE FUNCTION guard_payout();
CREATE FUNCTION guard_payout_moves() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  moved record;
BEGIN
  SELECT change.* INTO moved
  FROM deleted d JOIN inserted i USING (id) CROSS JOIN LATERAL (VALUES
    ('payout', d.id, d.status::text, i.status::text), ('approval', d.id, d.approval::text, i.approval::text)
  ) AS change (lifecycle, id, was, becomes)
  WHERE change.was <> change.becomes AND (change.lifecycle, change.was, change.becomes) NOT IN (
    SELECT m.lifecycle, m.from_status, m.to_status FROM public.lifecycle_move m)
  LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'payout %: % (%) never becomes %', moved.id, moved.was, moved.lifecycle, moved.becomes
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER "payout_moved" AFTER UPDATE ON "payout" REFERENCING NEW TABLE AS inserted OLD TABLE AS deleted
  FOR EACH STATEMENT EXECUTE FUNCTION guard_payout_moves();
CREATE TRIGGER "payout_kept" BEFORE DELETE OR TRUNCATE ON "payout" FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- How many there are of each kind, exactly and at once: whoever writes a merchant's payouts holds its balance, and so is
-- alone at its numbers.
CREATE FUNCTION count_payouts() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO payout_count AS k (merchant_id, payment_method, status, n)
    SELECT merchant_id, payment_method, status, count(*) FROM inserted GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ON CONFLICT (merchant_id, payment_method, status) DO UPDATE SET n = k.n + excluded.n;
  ELSE
    INSERT INTO payout_count AS k (merchant_id, payment_method, status, n)
    SELECT merchant_id, payment_method, status, sum(n)
    FROM (
      SELECT merchant_id, payment_method, status, 1 AS n FROM inserted
      UNION ALL SELECT merchant_id, payment_method, status, -1 FROM deleted
    ) AS moved
    GROUP BY 1, 2, 3 HAVING sum(n) <> 0 ORDER BY 1, 2, 3
    ON CONFLICT (merchant_id, payment_method, status) DO UPDATE SET n = k.n + excluded.n;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER "payout_inserted" AFTER INSERT ON "payout" REFERENCING NEW TABLE AS inserted
  FOR EACH STATEMENT EXECUTE FUNCTION count_payouts();
CREATE TRIGGER "payout_updated" AFTER UPDATE ON "payout" REFERENCING NEW TABLE AS inserted OLD TABLE AS deleted
  FOR EACH STATEMENT EXECUTE FUNCTION count_payouts();

-- The walls. A merchant's requests read these; its list of beneficiaries they write too, behind the same wall.
SELECT wall_in(name) FROM unnest(ARRAY['payout', 'payout_count', 'beneficiary']::regclass[]) AS name;
GRANT SELECT ON "payout", "payout_count", "beneficiary" TO payments_service, payments_merchant;
GRANT SELECT ON "movement" TO payments_merchant;
GRANT INSERT, UPDATE ("name", "account", "payment_method", "category", "is_active", "updated_at") ON "beneficiary" TO payments_merchant;
GRANT USAGE ON SEQUENCE "beneficiary_id_seq" TO payments_merchant;

-- What a merchant owes since before there was a column for it; of the auditor's point, what it owed there.
UPDATE "merchant_balance" b SET "receivable" = owed.amount
FROM (
  SELECT merchant_id, sum(CASE 'suspense'::ledger_account WHEN debit THEN amount ELSE -amount END) AS amount
  FROM movement WHERE 'suspense' IN (debit, credit) GROUP BY merchant_id
) AS owed WHERE b.merchant_id = owed.merchant_id;
UPDATE "audit_proven" p SET "receivable" = owed.amount
FROM (
  SELECT m.merchant_id, sum(CASE 'suspense'::ledger_account WHEN m.debit THEN m.amount ELSE -m.amount END) AS amount
  FROM movement m, audit_point point WHERE 'suspense' IN (m.debit, m.credit) AND m.id <= point.movement_id GROUP BY m.merchant_id
) AS owed WHERE p.merchant_id = owed.merchant_id;

-- As before; what a merchant owes runs beside, and is taken from whatever becomes available, at once: while it owes
-- anything, nothing is available.
CREATE OR REPLACE FUNCTION apply_movements() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  merchants int[] := ARRAY(SELECT DISTINCT merchant_id FROM inserted ORDER BY merchant_id);
  applied int;
  owing int[];
BEGIN
  PERFORM FROM merchant_balance WHERE merchant_id = ANY (merchants) ORDER BY merchant_id FOR UPDATE;
  WITH changed AS (
    UPDATE merchant_balance b
    SET available = b.available + change.available, reserved = b.reserved + change.reserved,
      receivable = b.receivable + change.receivable
    FROM (
      SELECT merchant_id,
        sum(CASE 'available'::ledger_account WHEN credit THEN amount WHEN debit THEN -amount ELSE 0 END) AS available,
        sum(CASE 'reserved'::ledger_account WHEN credit THEN amount WHEN debit THEN -amount ELSE 0 END) AS reserved,
        sum(CASE 'suspense'::ledger_account WHEN debit THEN amount WHEN credit THEN -amount ELSE 0 END) AS receivable
      FROM inserted GROUP BY merchant_id
    ) change
    WHERE b.merchant_id = change.merchant_id AND b.merchant_id = ANY (merchants)
    RETURNING b.merchant_id, b.available > 0 AND b.receivable > 0 AS pays
  )
  SELECT count(*), array_agg(merchant_id) FILTER (WHERE pays) INTO applied, owing FROM changed;
  IF applied <> cardinality(merchants) THEN
    RAISE EXCEPTION 'a merchant without a balance row' USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF owing IS NOT NULL THEN
    INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
    SELECT merchant_id, 'receivable:' || gen_random_uuid(), 'recover', 'available', 'suspense', least(available, receivable),
      service_now()
    FROM merchant_balance WHERE merchant_id = ANY (owing) ORDER BY merchant_id;
  END IF;
  RETURN NULL;
END $$;

-- Deposit: records the payment, sets its money aside, and the intent to ask the operator, with the event, all of it or
-- nothing. Who asks is judged first, then the reference, then of a refund what it gives back, then the halt, then the
-- money: what is covered is made, in order of arrival.
-- `outcome` is `made`, `unauthenticated`, `duplicate`, `not_refundable`, `too_large`, `halted`, `short`, or `again` where
-- only another call can tell (a second refund of one collection in this one); only `made` has ids, only it wrote.
CREATE FUNCTION deposit_many(
  merchant_ids int[], api_key_ids int[], api_key_versions int[], providers provider[], phones text[], amounts bigint[],
  refs text[], requests jsonb[], refund_of_ids bigint[], fence_ms bigint, first_check_ms bigint
) RETURNS TABLE (
  place int, outcome text, transaction_id bigint, request_id bigint, correlation_id uuid, created_at timestamptz
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  at timestamptz := service_now();
BEGIN
  PERFORM pg_advisory_xact_lock_shared(72707373, id)
  FROM (SELECT DISTINCT id FROM unnest(merchant_ids) AS id ORDER BY id) AS merchant;
  -- What is given back of a collection changes under its lock only.
  PERFORM FROM transaction t WHERE t.id = ANY (refund_of_ids) ORDER BY t.id FOR UPDATE;
  PERFORM FROM merchant_balance b WHERE b.merchant_id = ANY (merchant_ids) ORDER BY b.merchant_id FOR UPDATE;
  RETURN QUERY
  WITH RECURSIVE halt AS MATERIALIZED (
    -- Read after the locks and in the statement that moves: whoever waited meets a halt that came meanwhile.
    SELECT EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS NULL) AS on
  ), item AS MATERIALIZED (
    SELECT i.*, known.active IS NOT NULL AS allowed, old.found IS NOT NULL AS old, original.rest
    FROM unnest(merchant_ids, api_key_ids, api_key_versions, providers, phones, amounts, refs, requests, refund_of_ids)
      WITH ORDINALITY AS i (merchant_id, api_key_id, api_key_version, provider, phone, amount, reference, request,
        refund_of_id, place)
    LEFT JOIN LATERAL (
      SELECT true AS active FROM api_key k JOIN merchant m ON m.id = k.merchant_id AND m.status = 'active'
      WHERE k.id = i.api_key_id AND k.merchant_id = i.merchant_id AND k.version = i.api_key_version AND k.revoked_at IS NULL
      LIMIT 1
    ) AS known ON true
    LEFT JOIN LATERAL (
      -- Said so, only the index that identifies it can answer, whatever the planner believes of the others.
      SELECT true AS found FROM transaction t
      WHERE (t.reference, t.merchant_id) BETWEEN (i.reference, i.merchant_id) AND (i.reference, i.merchant_id) LIMIT 1
    ) AS old ON true
    -- What is left of a collection: paid, less what was given back and what is on its way.
    LEFT JOIN LATERAL (
      SELECT t.settled_amount - (
        SELECT coalesce(sum(CASE r.status WHEN 'success' THEN r.settled_amount WHEN 'processing' THEN r.amount END), 0)
        FROM transaction r WHERE r.refund_of_id = t.id) AS rest
      FROM transaction t
      WHERE t.id = i.refund_of_id AND t.merchant_id = i.merchant_id AND t.transaction_type = 'pay' AND t.status = 'success'
      LIMIT 1
    ) AS original ON true
  ), ranked AS MATERIALIZED (
    -- Of equal references in one call the first is judged.
    SELECT item.*, first_value(item.place) OVER (PARTITION BY item.merchant_id, item.reference, item.allowed ORDER BY item.place)
      AS first_place
    FROM item
  ), judged AS MATERIALIZED (
    SELECT r.*, CASE
        WHEN NOT r.allowed THEN 'unauthenticated'
        WHEN r.old THEN 'duplicate'
        WHEN r.first_place <> r.place THEN 'repeated'
        WHEN r.refund_of_id IS NOT NULL AND r.rest IS NULL THEN 'not_refundable'
        WHEN r.amount > r.rest THEN 'too_large'
        WHEN halt.on THEN 'halted'
        WHEN r.refund_of_id IS NOT NULL AND row_number() OVER (
          PARTITION BY r.refund_of_id, r.allowed AND NOT r.old AND r.first_place = r.place AND r.amount <= r.rest
          ORDER BY r.place) > 1 THEN 'again'
      END AS verdict
    FROM ranked r, halt
  ), queue AS MATERIALIZED (
    SELECT j.merchant_id, j.amount, j.place, row_number() OVER (PARTITION BY j.merchant_id ORDER BY j.place) AS nth
    FROM judged j WHERE j.verdict IS NULL
  ), walk AS (
    -- One step per item of a merchant: what is covered leaves less for the next.
    SELECT b.merchant_id, 0::bigint AS nth, b.available AS rest, NULL::bigint AS place, false AS covered
    FROM merchant_balance b WHERE b.merchant_id = ANY (merchant_ids)
    UNION ALL
    SELECT w.merchant_id, q.nth, CASE WHEN q.amount > w.rest THEN w.rest ELSE w.rest - q.amount END, q.place, q.amount <= w.rest
    FROM walk w JOIN queue q ON q.merchant_id = w.merchant_id AND q.nth = w.nth + 1
  ), covered AS MATERIALIZED (
    SELECT j.*, nextval('transaction_id_seq') AS id FROM judged j JOIN walk w ON w.place = j.place AND w.covered
  ), made AS (
    -- A collection may take the reference at this moment: who is there first has it.
    INSERT INTO transaction (id, merchant_id, transaction_type, payment_method, customer_phone, amount, status, reference,
      request_data, refund_of_id, created_at)
    SELECT id, merchant_id, 'deposit', provider, phone, amount, 'processing', reference, request, refund_of_id, at
    FROM covered ORDER BY merchant_id, reference
    ON CONFLICT (reference, merchant_id) DO NOTHING
    RETURNING id, merchant_id, payment_method, customer_phone, amount, status, reference, refund_of_id, created_at
  ), reserved AS (
    INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
    SELECT merchant_id, 'transaction:' || id, 'reserve', 'available', 'reserved', amount, at FROM made ORDER BY merchant_id, id
  ), asked AS (
    INSERT INTO operator_request (merchant_id, transaction_id, provider, kind, correlation_id, amount, phone, fence_until,
      next_check_at, created_at)
    SELECT merchant_id, id, payment_method, 'disburse', gen_random_uuid(), amount, customer_phone,
      now() + fence_ms * interval '1 millisecond', at + first_check_ms * interval '1 millisecond', at
    FROM made ORDER BY id
    RETURNING id, transaction_id, correlation_id
  ), told AS (
    INSERT INTO event (merchant_id, type, data, created_at)
    SELECT merchant_id, 'deposit_processing', jsonb_strip_nulls(jsonb_build_object(
      'transaction_id', id, 'reference', reference, 'amount', amount, 'currency', 'XOF', 'payment_method', payment_method,
      'customer_phone', customer_phone, 'status', status, 'refund_of', refund_of_id)), at
    FROM made ORDER BY merchant_id, id
  ), ended AS MATERIALIZED (
    SELECT j.place, j.first_place, made.id, asked.id AS request_id, asked.correlation_id, made.created_at, CASE
        WHEN j.verdict IS NOT NULL THEN j.verdict
        WHEN made.id IS NOT NULL THEN 'made'
        WHEN c.id IS NOT NULL THEN 'duplicate'
        -- Money was kept for one that was not made after all.
        WHEN EXISTS (
          SELECT FROM covered o WHERE o.merchant_id = j.merchant_id AND o.place < j.place AND o.id NOT IN (SELECT m.id FROM made m)
        ) THEN 'again'
        ELSE 'short'
      END AS outcome
    FROM judged j
    LEFT JOIN covered c ON c.place = j.place
    LEFT JOIN made ON made.id = c.id
    LEFT JOIN asked ON asked.transaction_id = made.id
  )
  SELECT e.place::int, CASE WHEN e.outcome <> 'repeated' THEN e.outcome WHEN first.outcome = 'made' THEN 'duplicate'
      ELSE first.outcome END, e.id, e.request_id, e.correlation_id, e.created_at
  FROM ended e JOIN ended first ON first.place = e.first_place
  ORDER BY e.place;
END $$;

-- Settles deposits: the one way in which one ends, once, whoever learned the outcome. What the operator paid leaves the
-- reservation, at most what was set aside, and the rest of it is free again; refused gives all of it back. A refund that
-- completes what was given back of a collection ends that one too.
-- Of several outcomes for one deposit in a call the first is tried. `moved` is false where the deposit had ended;
-- `status` is then what stands, null where there is none.
CREATE FUNCTION settle_deposits(
  transaction_ids bigint[], to_statuses transaction_status[], sources text[], amounts bigint[], operator_references text[],
  reasons text[], messages text[], evidences jsonb[], reversal_check_ms bigint[]
) RETURNS TABLE (place int, moved boolean, status transaction_status)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  at timestamptz := service_now();
  -- Neither ever changes.
  merchants int[];
  originals bigint[];
BEGIN
  SELECT array_agg(DISTINCT t.merchant_id), array_remove(array_agg(DISTINCT t.refund_of_id), NULL) INTO merchants, originals
  FROM transaction t WHERE t.id = ANY (transaction_ids);
  PERFORM FROM transaction t WHERE t.id = ANY (transaction_ids || originals) ORDER BY t.id FOR UPDATE;
  PERFORM FROM merchant_balance b WHERE b.merchant_id = ANY (merchants) ORDER BY b.merchant_id FOR UPDATE;
  RETURN QUERY
  WITH item AS MATERIALIZED (
    SELECT i.*, t.was, t.type, t.held, row_number() OVER (PARTITION BY i.id ORDER BY i.place) = 1 AS first
    FROM unnest(transaction_ids, to_statuses, sources, amounts, operator_references, reasons, messages, evidences,
      reversal_check_ms)
      WITH ORDINALITY AS i (id, to_status, source, amount, operator_reference, reason, message, evidence, watch_ms, place)
    LEFT JOIN LATERAL (
      SELECT t.status AS was, t.transaction_type AS type, (
        SELECT m.amount FROM movement m WHERE m.cause = 'transaction:' || t.id AND m.step = 'reserve') AS held
      FROM transaction t WHERE t.id = i.id LIMIT 1
    ) AS t ON true
  ), changed AS (
    UPDATE transaction t
    SET status = a.to_status, settled_at = at, evidence_source = a.source,
      operator_reference = coalesce(a.operator_reference, t.operator_reference),
      failure_reason = a.reason, failure_message = a.message,
      settled_amount = CASE WHEN a.to_status = 'success' THEN least(coalesce(a.amount, a.held), a.held) END
    FROM item a
    WHERE t.id = ANY (transaction_ids) AND t.id = a.id AND a.first AND a.type = 'deposit' AND a.held IS NOT NULL
      AND a.was = 'processing' AND a.to_status IN ('success', 'failed') AND EXISTS (
        SELECT FROM lifecycle_move m
        WHERE m.lifecycle = 'transaction' AND m.from_status = a.was::text AND m.to_status = a.to_status::text)
    RETURNING t.*, a.place, a.was, a.held, a.evidence, a.watch_ms
  ), paid AS (
    INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
    SELECT c.merchant_id, 'transaction:' || c.id, side.step, 'reserved', side.account, side.amount, at
    FROM changed c CROSS JOIN LATERAL (VALUES
      ('post'::ledger_step, clearing_account(c.payment_method), c.settled_amount),
      ('release'::ledger_step, 'available'::ledger_account, c.held - c.settled_amount),
      ('void'::ledger_step, 'available'::ledger_account, CASE WHEN c.settled_amount IS NULL THEN c.held END)
    ) AS side (step, account, amount)
    WHERE side.amount <> 0 ORDER BY c.merchant_id, c.id
  ), told AS (
    INSERT INTO event (merchant_id, type, data, created_at)
    SELECT c.merchant_id, CASE c.status WHEN 'success' THEN 'deposit_completed' ELSE 'deposit_failed' END,
      jsonb_strip_nulls(jsonb_build_object(
        'transaction_id', c.id, 'reference', c.reference, 'amount', coalesce(c.settled_amount, c.amount),
        'currency', 'XOF', 'payment_method', c.payment_method, 'customer_phone', c.customer_phone, 'status', c.status,
        'previous_status', c.was, 'failure_reason', c.failure_reason, 'refund_of', c.refund_of_id)), at
    FROM changed c ORDER BY c.merchant_id, c.id
  ), answered AS (
    UPDATE operator_request r
    SET state = CASE WHEN c.status = 'success' THEN 'settled' WHEN c.evidence_source <> 'service' THEN 'refused'
          ELSE 'closed' END::operator_request_state,
      -- A callback that came meanwhile and claims something else than was answered has its own question.
      next_check_at = CASE
        WHEN r.next_check_at <= at + (clock_timestamp() - now()) AND r.handle->>'claimed' <>
          CASE c.status WHEN 'success' THEN 'settled' ELSE 'refused' END THEN r.next_check_at
        -- What was paid may be taken back: of some operators only a question tells.
        WHEN c.status = 'success' THEN at + c.watch_ms * interval '1 millisecond' END,
      evidence = coalesce(c.evidence, r.evidence)
    FROM changed c
    WHERE r.merchant_id = c.merchant_id AND r.transaction_id = c.id AND r.kind = 'disburse'
  )
  SELECT i.place::int, c.id IS NOT NULL, coalesce(now_.status, i.was)
  FROM item i
  LEFT JOIN changed c ON c.place = i.place
  LEFT JOIN changed now_ ON now_.id = i.id
  ORDER BY i.place;

  IF originals <> '{}' THEN
    WITH given AS MATERIALIZED (
      SELECT r.refund_of_id AS id, sum(r.settled_amount) AS amount
      FROM transaction r WHERE r.refund_of_id = ANY (originals) AND r.status = 'success' GROUP BY 1
    ), ended AS (
      UPDATE transaction t SET status = 'reversed' FROM given g
      WHERE t.id = ANY (originals) AND t.id = g.id AND t.status = 'success' AND t.settled_amount <= g.amount
      RETURNING t.*
    )
    INSERT INTO event (merchant_id, type, data, created_at)
    SELECT e.merchant_id, 'payment_reversed', jsonb_build_object(
      'transaction_id', e.id, 'reference', e.reference, 'amount', e.settled_amount, 'currency', 'XOF',
      'payment_method', e.payment_method, 'customer_phone', e.customer_phone, 'status', e.status,
      'previous_status', 'success', 'late', e.late, 'refunded', true), at
    FROM ended e ORDER BY e.merchant_id, e.id;
  END IF;
END $$;

-- Settle, as before, of collections alone: money that was set aside ends otherwise.
CREATE OR REPLACE FUNCTION settle_many(
  transaction_ids bigint[], to_statuses transaction_status[], sources text[], amounts bigint[], operator_references text[],
  reasons text[], messages text[], evidences jsonb[], late_check_ms bigint, reversal_check_ms bigint[] DEFAULT NULL
) RETURNS TABLE (
  place int, transaction_id bigint, moved boolean, from_status transaction_status, status transaction_status, late boolean
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  at timestamptz := service_now();
BEGIN
  PERFORM FROM transaction t WHERE t.id = ANY (transaction_ids) ORDER BY t.id FOR UPDATE;
  RETURN QUERY
  WITH item AS (
    SELECT i.*, i.ordinality::int AS place
    FROM unnest(transaction_ids, to_statuses, sources, amounts, operator_references, reasons, messages, evidences,
      reversal_check_ms)
      WITH ORDINALITY AS i (id, to_status, source, amount, operator_reference, reason, message, evidence, watch_ms, ordinality)
  ), chosen AS (
    SELECT DISTINCT ON (i.id) i.*, t.status AS was, t.status IN ('expired', 'failed', 'cancelled') AS was_over,
      t.transaction_type AS type
    FROM item i JOIN transaction t ON t.id = i.id
    ORDER BY i.id, i.place
  ), allowed AS (
    SELECT c.* FROM chosen c
    JOIN lifecycle_move m ON m.lifecycle = 'transaction' AND m.from_status = c.was::text AND m.to_status = c.to_status::text
    -- What is not an outcome (processing, reversed) is never settled: it takes other movements.
    WHERE c.type = 'pay' AND c.to_status IN ('success', 'failed', 'cancelled', 'expired')
      AND (NOT c.was_over OR c.source IN ('initiate', 'query'))
  ), changed AS (
    UPDATE transaction t
    SET status = a.to_status, late = t.late OR a.was_over, settled_at = at, evidence_source = a.source,
      operator_reference = coalesce(a.operator_reference, t.operator_reference),
      failure_reason = a.reason, failure_message = a.message,
      settled_amount = CASE WHEN a.to_status = 'success' THEN coalesce(a.amount, t.amount) ELSE t.settled_amount END
    FROM allowed a WHERE t.id = a.id
    RETURNING t.*, a.place, a.was, a.evidence, a.watch_ms
  ), credited AS (
    INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
    SELECT c.merchant_id, 'transaction:' || c.id, 'credit', clearing_account(c.payment_method), 'available',
      c.settled_amount, c.settled_at
    FROM changed c WHERE c.status = 'success' ORDER BY c.merchant_id, c.id
  ), told AS (
    INSERT INTO event (merchant_id, type, data, created_at)
    SELECT c.merchant_id,
      CASE c.status WHEN 'success' THEN 'payment_received' ELSE 'payment_' || c.status::text END,
      jsonb_strip_nulls(jsonb_build_object(
        'transaction_id', c.id, 'reference', c.reference, 'amount', coalesce(c.settled_amount, c.amount),
        'currency', 'XOF', 'payment_method', c.payment_method, 'customer_phone', c.customer_phone, 'status', c.status,
        'previous_status', c.was, 'late', c.late, 'failure_reason', c.failure_reason)), c.settled_at
    FROM changed c ORDER BY c.merchant_id, c.id
  ), answered AS (
    UPDATE operator_request r
    SET state = CASE WHEN c.status = 'success' THEN 'settled'
          WHEN c.status = 'failed' AND c.evidence_source <> 'service' THEN 'refused'
          WHEN c.status = 'expired' THEN r.state ELSE 'closed' END::operator_request_state,
      -- What a callback made due stays due, unless it claims what was answered; it may have come while this waited.
      -- What expired is still asked about for a while: late money is real.
      -- What was paid may be taken back: of some operators only a question tells.
      next_check_at = CASE
        WHEN r.next_check_at <= at + (clock_timestamp() - now()) AND (c.status = 'expired' OR r.handle->>'claimed' <>
          CASE c.status WHEN 'success' THEN 'settled' ELSE 'refused' END) THEN r.next_check_at
        WHEN c.status = 'success' THEN at + c.watch_ms * interval '1 millisecond'
        WHEN c.status = 'expired' THEN at + late_check_ms * interval '1 millisecond' END,
      evidence = coalesce(c.evidence, r.evidence)
    FROM changed c
    WHERE r.merchant_id = c.merchant_id AND r.transaction_id = c.id AND r.kind = 'collect'
  )
  SELECT i.place, i.id, c.id IS NOT NULL AND c.place = i.place, h.was, coalesce(c.status, t.status), coalesce(c.late, t.late)
  FROM item i
  JOIN transaction t ON t.id = i.id
  LEFT JOIN chosen h ON h.id = i.id
  LEFT JOIN changed c ON c.id = i.id
  ORDER BY i.place;
END $$;

-- The audit, as before; what is owed beside what is held, and what money out moves.
CREATE OR REPLACE FUNCTION audit_ledger(whole boolean) RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan SET jit = off SET work_mem = '64MB' SET enable_seqscan = on AS $$
#variable_conflict use_column
DECLARE
  since audit_point := (SELECT p FROM audit_point p WHERE NOT whole);
  since_movement bigint := coalesce(since.movement_id, 0);
  since_event bigint := coalesce(since.event_id, 0);
  before_event bigint := coalesce(since.event_id_before, 0);
  all_of_it boolean := since IS NULL;
  touched bigint[];
  causes text[];
  changes text[] := ARRAY(
    SELECT event_of('pending') UNION SELECT event_of(m.to_status) FROM lifecycle_move m WHERE m.lifecycle = 'transaction');
BEGIN
  IF NOT all_of_it THEN
    touched := ARRAY(
      SELECT (e.data->>'transaction_id')::bigint FROM event e WHERE e.id > since_event AND e.data ? 'transaction_id'
      UNION SELECT transaction_of(m.cause) FROM movement m WHERE m.id > since_movement AND m.cause LIKE 'transaction:%');
    causes := ARRAY(SELECT 'transaction:' || id FROM unnest(touched) id);
  END IF;

  RETURN QUERY
  WITH proven AS (
    SELECT p.merchant_id, p.available, p.reserved, p.receivable FROM audit_proven p WHERE NOT all_of_it
  ), moved AS (
    SELECT m.merchant_id,
      sum(CASE 'available'::ledger_account WHEN m.credit THEN m.amount WHEN m.debit THEN -m.amount ELSE 0 END) AS available,
      sum(CASE 'reserved'::ledger_account WHEN m.credit THEN m.amount WHEN m.debit THEN -m.amount ELSE 0 END) AS reserved,
      sum(CASE 'suspense'::ledger_account WHEN m.debit THEN m.amount WHEN m.credit THEN -m.amount ELSE 0 END) AS receivable
    FROM movement m WHERE m.id > since_movement GROUP BY m.merchant_id
  ), rebuilt AS (
    SELECT merchant_id, coalesce(p.available, 0) + coalesce(m.available, 0) AS available,
      coalesce(p.reserved, 0) + coalesce(m.reserved, 0) AS reserved,
      coalesce(p.receivable, 0) + coalesce(m.receivable, 0) AS receivable
    FROM proven p FULL JOIN moved m USING (merchant_id)
  )
  SELECT 'balances_equal_movements', merchant_id, CASE WHEN b.available IS NULL THEN 'has movements but no balance'
    ELSE format('balance says available %s, reserved %s%s; its movements say %s, %s%s', b.available, b.reserved,
      ', receivable ' || nullif(b.receivable, 0), coalesce(r.available, 0), coalesce(r.reserved, 0),
      ', ' || nullif(r.receivable, 0)) END
  FROM merchant_balance b FULL JOIN rebuilt r USING (merchant_id)
  WHERE (b.available, b.reserved, b.receivable)
    IS DISTINCT FROM (coalesce(r.available, 0), coalesce(r.reserved, 0), coalesce(r.receivable, 0));

  RETURN QUERY
  SELECT 'no_balance_below_zero', b.merchant_id, format('available %s, reserved %s, receivable %s', b.available, b.reserved, b.receivable)
  FROM merchant_balance b WHERE b.available < 0 OR b.reserved < 0 OR b.receivable < 0;

  RETURN QUERY
  WITH credit AS (
    SELECT m.* FROM movement m
    WHERE m.step = 'credit' AND (all_of_it OR m.id > since_movement OR m.cause = ANY (causes))
  ), paid AS (
    SELECT t.id, t.merchant_id, t.settled_amount AS amount, holder.account AS debit
    FROM transaction t JOIN (
      SELECT provider, clearing_account(provider) AS account FROM unnest(enum_range(NULL::provider)) provider OFFSET 0
    ) holder ON holder.provider = t.payment_method
    WHERE t.transaction_type = 'pay' AND t.status IN ('success', 'reversed') AND (all_of_it OR t.id = ANY (touched))
  )
  SELECT 'collections_credited_once', coalesce(p.merchant_id, c.merchant_id), CASE
    WHEN c.cause IS NULL THEN format('transaction:%s is paid but was never credited', p.id)
    WHEN p.id IS NULL THEN c.cause || ' was credited but is not paid'
    ELSE c.cause || ' was credited with another amount, account or merchant' END
  FROM paid p FULL JOIN credit c ON transaction_of(c.cause) = p.id
  WHERE (p.merchant_id, p.amount, p.debit, 'available'::ledger_account)
    IS DISTINCT FROM (c.merchant_id, c.amount, c.debit, c.credit);

  RETURN QUERY
  WITH back AS (
    SELECT m.cause, min(m.merchant_id) AS merchant_id, max(m.merchant_id) AS merchant_id_too, sum(m.amount)::bigint AS amount,
      min(m.credit) AS account, max(m.credit) AS account_too
    FROM movement m
    WHERE m.step IN ('reverse', 'shortfall') AND m.debit IN ('available', 'suspense') AND (all_of_it OR m.id > since_movement OR m.cause = ANY (causes))
    GROUP BY m.cause
  ), reversed AS (
    SELECT t.id, t.merchant_id, t.settled_amount AS amount, clearing_account(t.payment_method) AS account
    FROM transaction t
    WHERE t.transaction_type = 'pay' AND t.status = 'reversed' AND (all_of_it OR t.id = ANY (touched))
  )
  SELECT 'collections_credited_once', coalesce(r.merchant_id, b.merchant_id), CASE
    WHEN b.cause IS NULL THEN format('transaction:%s is reversed but was never given back', r.id)
    WHEN r.id IS NULL THEN b.cause || ' was given back but is not reversed'
    ELSE b.cause || ' was given back with another amount, account or merchant' END
  FROM reversed r FULL JOIN back b ON transaction_of(b.cause) = r.id
  WHERE (r.merchant_id, r.merchant_id, r.amount, r.account, r.account)
    IS DISTINCT FROM (b.merchant_id, b.merchant_id_too, b.amount, b.account, b.account_too)
    -- Or its refunds gave all of it back to the payer.
    AND NOT (b.cause IS NULL AND r.amount <= (
      SELECT coalesce(sum(g.settled_amount), 0) FROM transaction g WHERE g.refund_of_id = r.id));

  RETURN QUERY
  SELECT 'reservations_end_once', ended.merchant_id, ended.cause || ' ended otherwise than it was reserved'
  FROM movement ended LEFT JOIN movement held ON held.cause = ended.cause AND held.step = 'reserve'
    LEFT JOIN movement rest ON rest.cause = ended.cause AND rest.step = 'release' AND ended.step = 'post'
  WHERE ended.step IN ('post', 'void') AND ended.id > since_movement
    AND (ended.merchant_id, ended.amount + coalesce(rest.amount, 0), ended.debit)
      IS DISTINCT FROM (held.merchant_id, held.amount, held.credit)
  UNION ALL
  SELECT 'reservations_end_once', posted.merchant_id, posted.cause || ' was paid out and given back'
  FROM movement posted JOIN movement voided ON voided.cause = posted.cause AND voided.step = 'void'
  WHERE posted.step = 'post' AND greatest(posted.id, voided.id) > since_movement
  UNION ALL
  SELECT 'reservations_end_once', held.merchant_id, format('%s is %s, and its money still reserved', held.cause, t.status)
  FROM movement held JOIN transaction t ON t.id = transaction_of(held.cause)
  WHERE held.step = 'reserve' AND t.status NOT IN ('pending', 'processing')
    AND (all_of_it OR held.cause = ANY (causes))
    AND NOT EXISTS (SELECT FROM movement e WHERE e.cause = held.cause AND e.step IN ('post', 'void'));

  RETURN QUERY
  SELECT 'events_tell_every_change', h.merchant_id, format('positions end at %s, with %s of %s events after %s',
    h.position, found.count, h.position - found.since, found.since)
  FROM stream_head h
  LEFT JOIN (SELECT * FROM audit_proven WHERE NOT all_of_it) p USING (merchant_id)
  CROSS JOIN LATERAL (
    SELECT coalesce(p.position, 0) AS since, count(*) AS count, coalesce(max(e.position), 0) AS last
    FROM event e WHERE e.merchant_id = h.merchant_id AND e.position > coalesce(p.position, 0)
  ) found
  WHERE (all_of_it OR h.position <> coalesce(p.position, 0))
    AND (found.count <> h.position - found.since OR found.last <> h.position);

  -- A chain holds where the hashes of what was told cancel out but for the last one: each event begins where the one
  -- before it ended, none is missing, and none is told twice.
  RETURN QUERY
  WITH lawful AS MATERIALIZED (
    SELECT event_of(m.to_status) AS type, m.from_status AS was, m.to_status AS status
    FROM lifecycle_move m WHERE m.lifecycle = 'transaction'
    UNION ALL SELECT 'payment_pending', '', 'pending'
    -- The operator takes back what refunds had given back already.
    UNION ALL SELECT 'payment_reversed', 'reversed', 'reversed'
  ), told AS (
    SELECT c.transaction_id, min(c.merchant_id) AS merchant_id, max(c.merchant_id) AS merchant_id_too, min(c.id) AS first_id,
      count(*) FILTER (WHERE c.was = '') AS begun,
      bool_and(((c.type, c.was, c.status) IN (SELECT l.type, l.was, l.status FROM lawful l)) IS TRUE) AS lawful,
      sum(hashtext(c.status)::bigint - CASE c.was WHEN '' THEN 0 ELSE hashtext(c.was) END) AS net
    FROM (
      SELECT e.id, e.merchant_id, e.type, (e.data->>'transaction_id')::bigint AS transaction_id, e.data->>'status' AS status,
        coalesce(e.data->>'previous_status', '') AS was
      FROM event e WHERE e.id > since_event AND e.type = ANY (changes)
      OFFSET 0
    ) c GROUP BY c.transaction_id
  )
  SELECT 'events_tell_every_change', coalesce(t.merchant_id, told.merchant_id), CASE
    WHEN t.id IS NULL THEN format('events tell of transaction:%s, which is not there', told.transaction_id)
    ELSE format('its events do not tell how transaction:%s became %s', t.id, t.status) END
  -- What was told of it before the point ended where its first event since begins; the whole proof takes no such word.
  FROM told LEFT JOIN event first ON NOT all_of_it AND told.begun = 0 AND first.id = told.first_id FULL JOIN (
    SELECT * FROM transaction WHERE transaction_type = 'pay' AND (all_of_it OR id = ANY (touched))
  ) t ON t.id = told.transaction_id
  WHERE CASE WHEN told.transaction_id IS NULL THEN all_of_it ELSE
    (told.merchant_id, told.merchant_id_too) IS DISTINCT FROM (t.merchant_id, t.merchant_id)
    OR NOT told.lawful OR told.begun <> 1 AND (all_of_it OR told.begun <> 0)
    OR told.net + CASE told.begun WHEN 0 THEN hashtext(first.data->>'previous_status') ELSE 0 END <> hashtext(t.status::text) END
  UNION ALL
  SELECT 'events_tell_every_change', c.merchant_id, 'no event tells of the credit of ' || c.cause
  FROM movement c
  WHERE NOT all_of_it AND c.step = 'credit' AND c.id > since_movement AND NOT EXISTS (
    SELECT FROM event e WHERE e.id > before_event AND e.type = 'payment_received'
      AND (e.data->>'transaction_id')::bigint = transaction_of(c.cause));

  RETURN QUERY
  SELECT 'statuses_agree_with_requests', t.merchant_id, format('transaction:%s is %s, and %s', t.id, t.status,
    CASE WHEN r.id IS NULL THEN 'nothing was asked of the operator' ELSE format('its request over %s by %s is %s, asked about %s',
      r.amount, r.provider, r.state, coalesce(r.next_check_at::text, 'no more')) END)
  FROM transaction t
  LEFT JOIN operator_request r ON r.merchant_id = t.merchant_id AND r.transaction_id = t.id AND r.kind = 'collect'
  WHERE t.transaction_type = 'pay' AND (all_of_it OR t.id = ANY (touched))
    AND (r.amount = t.amount AND r.provider = t.payment_method AND CASE t.status
      WHEN 'success' THEN r.state = 'settled'
      WHEN 'reversed' THEN r.state = 'settled'
      WHEN 'failed' THEN r.state IN ('refused', 'closed')
      WHEN 'cancelled' THEN r.state = 'closed'
      WHEN 'expired' THEN r.state NOT IN ('settled', 'refused')
      -- Not decided: then somebody will ask.
      ELSE r.state IN ('sending', 'unsent', 'accepted', 'doubt') AND r.next_check_at IS NOT NULL END) IS NOT TRUE
  UNION ALL
  SELECT 'statuses_agree_with_requests', r.merchant_id, format('transaction:%s was asked of the operator twice', r.transaction_id)
  FROM operator_request r JOIN operator_request other
    ON other.transaction_id = r.transaction_id AND other.merchant_id = r.merchant_id AND other.kind = r.kind AND other.id < r.id
  WHERE all_of_it OR (r.merchant_id, r.transaction_id) IN (
    SELECT t.merchant_id, t.id FROM transaction t WHERE t.id = ANY (touched));

  RETURN QUERY
  SELECT 'movements_have_one_cause', m.merchant_id, format('%s has %s twice', m.cause, m.step)
  FROM movement m JOIN movement other ON other.cause = m.cause AND other.step = m.step AND other.id < m.id
  WHERE m.id > since_movement
  UNION ALL
  SELECT 'movements_have_one_cause', m.merchant_id, format('%s from %s to %s for %s: nothing of ours moves so', m.step,
    m.debit, m.credit, m.cause)
  FROM movement m LEFT JOIN transaction t ON t.id = transaction_of(m.cause)
  WHERE m.id > since_movement AND NOT (CASE m.step
    WHEN 'fund' THEN m.cause LIKE 'funding:%' AND m.debit = 'funding' AND m.credit = 'available'
    WHEN 'credit' THEN t.merchant_id = m.merchant_id AND m.credit = 'available' AND m.debit::text LIKE 'clearing\_%'
    WHEN 'reverse' THEN CASE WHEN t.transaction_type = 'pay'
      THEN t.merchant_id = m.merchant_id AND m.debit = 'available' AND m.credit::text LIKE 'clearing\_%'
      ELSE (t.merchant_id = m.merchant_id OR m.cause ~ '^payout:.') AND m.debit::text LIKE 'clearing\_%' AND m.credit = 'available' END
    WHEN 'shortfall' THEN t.merchant_id = m.merchant_id AND m.debit = 'suspense' AND m.credit::text LIKE 'clearing\_%'
    WHEN 'recover' THEN m.cause LIKE 'receivable:%' AND m.debit = 'available' AND m.credit = 'suspense'
    ELSE (t.merchant_id = m.merchant_id OR m.cause ~ '^payout:.') AND CASE m.step
      WHEN 'reserve' THEN m.debit = 'available' AND m.credit = 'reserved'
      WHEN 'post' THEN m.debit = 'reserved' AND m.credit::text LIKE 'clearing\_%'
        AND m.credit = coalesce(clearing_account(t.payment_method), m.credit)
      ELSE m.debit = 'reserved' AND m.credit = 'available' END END IS TRUE);

  RETURN QUERY
  SELECT 'references_are_unique', t.merchant_id, format('transaction:%s and transaction:%s have the same reference', other.id, t.id)
  FROM transaction t JOIN transaction other
    ON other.reference = t.reference AND other.merchant_id = t.merchant_id AND other.id < t.id
  WHERE all_of_it OR t.id = ANY (touched);
END $$;

-- As before, with what is owed.
CREATE OR REPLACE FUNCTION note_audit(whole boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  point audit_point;
  is_first boolean;
  end_movement bigint := coalesce(pg_sequence_last_value('movement_id_seq'), 0);
  end_event bigint := coalesce(pg_sequence_last_value('event_id_seq'), 0);
  -- Asked after the ends: who holds an id below them is among these, or has ended.
  writers text[] := audit_writers();
  summed_to bigint;
BEGIN
  INSERT INTO audit_point (next_movement_id, next_event_id, next_writers) VALUES (end_movement, end_event, writers)
  ON CONFLICT DO NOTHING;
  is_first := FOUND;
  SELECT * INTO point FROM audit_point FOR UPDATE;
  IF whole THEN
    summed_to := 0;
    DELETE FROM audit_proven;
    UPDATE audit_point SET whole_proven_at = now();
  ELSE
    summed_to := point.movement_id;
  END IF;
  IF NOT is_first AND point.next_writers = '{}' THEN
    UPDATE audit_point
    SET movement_id = next_movement_id, event_id = next_event_id, event_id_before = event_id,
      next_movement_id = end_movement, next_event_id = end_event, next_writers = writers
    RETURNING * INTO point;
  ELSIF NOT is_first THEN
    UPDATE audit_point
    SET next_writers = ARRAY(SELECT unnest(next_writers) INTERSECT SELECT unnest(writers));
  END IF;
  INSERT INTO audit_proven AS p (merchant_id, available, reserved, receivable, position)
  SELECT merchant_id, coalesce(m.available, 0), coalesce(m.reserved, 0), coalesce(m.receivable, 0), coalesce(h.position, 0)
  FROM (
    SELECT merchant_id,
      sum(CASE 'available'::ledger_account WHEN credit THEN amount WHEN debit THEN -amount ELSE 0 END) AS available,
      sum(CASE 'reserved'::ledger_account WHEN credit THEN amount WHEN debit THEN -amount ELSE 0 END) AS reserved,
      sum(CASE 'suspense'::ledger_account WHEN debit THEN amount WHEN credit THEN -amount ELSE 0 END) AS receivable
    FROM movement WHERE id > summed_to AND id <= point.movement_id GROUP BY merchant_id
  ) m FULL JOIN (
    SELECT s.* FROM stream_head s LEFT JOIN audit_proven a USING (merchant_id)
    WHERE s.position IS DISTINCT FROM a.position
  ) h USING (merchant_id)
  ON CONFLICT (merchant_id) DO UPDATE
  SET available = p.available + excluded.available, reserved = p.reserved + excluded.reserved,
    receivable = p.receivable + excluded.receivable,
    position = greatest(p.position, excluded.position);
END $$;

REVOKE EXECUTE ON FUNCTION guard_payout, guard_payout_moves, count_payouts, deposit_many, settle_deposits FROM PUBLIC;
GRANT EXECUTE ON FUNCTION deposit_many, settle_deposits TO payments_service;
