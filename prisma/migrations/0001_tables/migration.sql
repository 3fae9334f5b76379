-- CreateEnum
CREATE TYPE "merchant_status" AS ENUM ('active', 'inactive');

-- CreateEnum
CREATE TYPE "provider" AS ENUM ('OperatorA', 'OperatorB', 'OperatorC', 'OperatorD');

-- CreateEnum
CREATE TYPE "transaction_type" AS ENUM ('pay', 'deposit', 'balance_check');

-- CreateEnum
CREATE TYPE "transaction_status" AS ENUM ('pending', 'processing', 'success', 'failed', 'cancelled', 'reversed', 'expired');

-- CreateEnum
CREATE TYPE "operator_request_kind" AS ENUM ('collect');

-- CreateEnum
CREATE TYPE "operator_request_state" AS ENUM ('sending', 'unsent', 'accepted', 'doubt', 'settled', 'refused', 'closed');

-- CreateEnum
CREATE TYPE "ledger_account" AS ENUM ('available', 'reserved', 'clearing_operator_a', 'clearing_operator_b', 'clearing_operator_c', 'clearing_operator_d', 'fees', 'suspense', 'funding');

-- CreateEnum
CREATE TYPE "ledger_step" AS ENUM ('fund', 'credit', 'reserve', 'post', 'void');

-- CreateTable
CREATE TABLE "merchant" (
    "id" SERIAL NOT NULL,
    "name" TEXT NOT NULL,
    "status" "merchant_status" NOT NULL DEFAULT 'active',
    "ip_whitelist" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "deactivated_at" TIMESTAMPTZ(3),

    CONSTRAINT "merchant_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "api_key" (
    "id" SERIAL NOT NULL,
    "merchant_id" INTEGER NOT NULL,
    "name" TEXT NOT NULL,
    "key" TEXT NOT NULL,
    "secret_hash" BYTEA NOT NULL,
    "pepper_id" SMALLINT NOT NULL,
    "scopes" TEXT[],
    "version" INTEGER NOT NULL DEFAULT 1,
    "revoked_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "api_key_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "signing_key" (
    "kid" TEXT NOT NULL,
    "public_key" JSONB NOT NULL,
    "sealed_private" BYTEA NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "retired_at" TIMESTAMPTZ(3),

    CONSTRAINT "signing_key_pkey" PRIMARY KEY ("kid")
);

-- CreateTable
CREATE TABLE "rate_limit" (
    "name" TEXT NOT NULL,
    "hits" TIMESTAMPTZ(3)[],

    CONSTRAINT "rate_limit_pkey" PRIMARY KEY ("name")
);

-- CreateTable
CREATE TABLE "sandbox_clock" (
    "singleton" BOOLEAN NOT NULL DEFAULT true,
    "offset_ms" BIGINT NOT NULL,

    CONSTRAINT "sandbox_clock_pkey" PRIMARY KEY ("singleton")
);

-- CreateTable
CREATE TABLE "lifecycle_move" (
    "lifecycle" TEXT NOT NULL,
    "from_status" TEXT NOT NULL,
    "to_status" TEXT NOT NULL,

    CONSTRAINT "lifecycle_move_pkey" PRIMARY KEY ("lifecycle","from_status","to_status")
);

-- CreateTable
CREATE TABLE "transaction" (
    "id" BIGSERIAL NOT NULL,
    "merchant_id" INTEGER NOT NULL,
    "transaction_type" "transaction_type" NOT NULL,
    "payment_method" "provider" NOT NULL,
    "customer_phone" TEXT NOT NULL,
    "amount" BIGINT NOT NULL,
    "status" "transaction_status" NOT NULL,
    "reference" TEXT NOT NULL,
    "request_data" JSONB NOT NULL,
    "payment_url" TEXT,
    "operator_reference" TEXT,
    "failure_reason" TEXT,
    "failure_message" TEXT,
    "settled_amount" BIGINT,
    "evidence_source" TEXT,
    "late" BOOLEAN NOT NULL DEFAULT false,
    "settled_at" TIMESTAMPTZ(3),
    "expires_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "transaction_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "operator_request" (
    "id" BIGSERIAL NOT NULL,
    "merchant_id" INTEGER NOT NULL,
    "transaction_id" BIGINT NOT NULL,
    "provider" "provider" NOT NULL,
    "kind" "operator_request_kind" NOT NULL,
    "correlation_id" UUID NOT NULL,
    "amount" BIGINT NOT NULL,
    "phone" TEXT NOT NULL,
    "state" "operator_request_state" NOT NULL DEFAULT 'sending',
    "attempt" SMALLINT NOT NULL DEFAULT 1,
    "handle" JSONB NOT NULL DEFAULT '{}',
    "evidence" JSONB,
    "fence_until" TIMESTAMPTZ(3) NOT NULL,
    "query_after" TIMESTAMPTZ(3),
    "next_check_at" TIMESTAMPTZ(3),
    "check_count" INTEGER NOT NULL DEFAULT 0,
    "accepted_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "operator_request_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "operator_exchange" (
    "id" BIGSERIAL NOT NULL,
    "merchant_id" INTEGER NOT NULL,
    "request_id" BIGINT NOT NULL,
    "operation" TEXT NOT NULL,
    "method" TEXT NOT NULL,
    "path" TEXT NOT NULL,
    "status" SMALLINT,
    "request_body" TEXT NOT NULL,
    "response_body" TEXT NOT NULL,
    "error" TEXT,
    "duration_ms" INTEGER NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "operator_exchange_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "operator_callback" (
    "id" BIGSERIAL NOT NULL,
    "merchant_id" INTEGER,
    "request_id" BIGINT,
    "provider" "provider" NOT NULL,
    "dedupe_key" TEXT NOT NULL,
    "body" TEXT NOT NULL,
    "received_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "operator_callback_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "movement" (
    "id" BIGSERIAL NOT NULL,
    "merchant_id" INTEGER NOT NULL,
    "cause" TEXT NOT NULL,
    "step" "ledger_step" NOT NULL,
    "debit" "ledger_account" NOT NULL,
    "credit" "ledger_account" NOT NULL,
    "amount" BIGINT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "movement_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "merchant_balance" (
    "merchant_id" INTEGER NOT NULL,
    "available" BIGINT NOT NULL DEFAULT 0,
    "reserved" BIGINT NOT NULL DEFAULT 0,

    CONSTRAINT "merchant_balance_pkey" PRIMARY KEY ("merchant_id")
);

-- CreateTable
CREATE TABLE "event" (
    "id" BIGSERIAL NOT NULL,
    "merchant_id" INTEGER NOT NULL,
    "position" BIGINT,
    "type" TEXT NOT NULL,
    "data" JSONB NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "event_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "stream_head" (
    "merchant_id" INTEGER NOT NULL,
    "position" BIGINT NOT NULL,

    CONSTRAINT "stream_head_pkey" PRIMARY KEY ("merchant_id")
);

-- CreateIndex
CREATE UNIQUE INDEX "api_key_key_key" ON "api_key"("key");

-- CreateIndex
CREATE INDEX "api_key_merchant_id_idx" ON "api_key"("merchant_id");

-- CreateIndex
CREATE UNIQUE INDEX "transaction_reference_merchant_id_key" ON "transaction"("reference", "merchant_id");

-- CreateIndex
CREATE UNIQUE INDEX "transaction_merchant_id_id_key" ON "transaction"("merchant_id", "id");

-- CreateIndex
CREATE UNIQUE INDEX "operator_request_correlation_id_key" ON "operator_request"("correlation_id");

-- CreateIndex
CREATE INDEX "operator_request_merchant_id_transaction_id_idx" ON "operator_request"("merchant_id", "transaction_id");

-- CreateIndex
CREATE INDEX "operator_exchange_request_id_idx" ON "operator_exchange"("request_id");

-- CreateIndex
CREATE UNIQUE INDEX "operator_callback_provider_dedupe_key_key" ON "operator_callback"("provider", "dedupe_key");

-- CreateIndex
CREATE INDEX "movement_merchant_id_id_idx" ON "movement"("merchant_id", "id");

-- CreateIndex
CREATE UNIQUE INDEX "movement_cause_step_key" ON "movement"("cause", "step");

-- CreateIndex
CREATE UNIQUE INDEX "event_merchant_id_position_key" ON "event"("merchant_id", "position");

-- AddForeignKey
ALTER TABLE "api_key" ADD CONSTRAINT "api_key_merchant_id_fkey" FOREIGN KEY ("merchant_id") REFERENCES "merchant"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "transaction" ADD CONSTRAINT "transaction_merchant_id_fkey" FOREIGN KEY ("merchant_id") REFERENCES "merchant"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "operator_request" ADD CONSTRAINT "operator_request_merchant_id_transaction_id_fkey" FOREIGN KEY ("merchant_id", "transaction_id") REFERENCES "transaction"("merchant_id", "id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "merchant_balance" ADD CONSTRAINT "merchant_balance_merchant_id_fkey" FOREIGN KEY ("merchant_id") REFERENCES "merchant"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- Below: written by hand. What the schema language cannot say.

-- Bounds that hold whatever the code does.
ALTER TABLE "merchant" ADD CONSTRAINT "merchant_name_length" CHECK (char_length("name") BETWEEN 1 AND 200);
ALTER TABLE "transaction"
  ADD CONSTRAINT "transaction_amount" CHECK (
    CASE "transaction_type" WHEN 'pay' THEN "amount" >= 100 WHEN 'deposit' THEN "amount" >= 1000 ELSE "amount" = 0 END
  ),
  ADD CONSTRAINT "transaction_phone" CHECK (
    "customer_phone" ~ '^\+223[2-9][0-9]{7}$' OR ("transaction_type" = 'balance_check' AND "customer_phone" = '')
  ),
  ADD CONSTRAINT "transaction_reference" CHECK (char_length("reference") BETWEEN 1 AND 100),
  ADD CONSTRAINT "transaction_settled_amount" CHECK (
    "settled_amount" > 0 AND ("settled_amount" IS NOT NULL) = ("status" IN ('success', 'reversed'))
    OR "settled_amount" IS NULL AND ("status" NOT IN ('success', 'reversed') OR "transaction_type" = 'balance_check')
  ),
  -- Only money that came after the end is late.
  ADD CONSTRAINT "transaction_late" CHECK (NOT "late" OR "status" IN ('success', 'reversed'));
ALTER TABLE "operator_request"
  ADD CONSTRAINT "operator_request_amount" CHECK ("amount" > 0),
  ADD CONSTRAINT "operator_request_attempt" CHECK ("attempt" >= 1);
ALTER TABLE "movement"
  ADD CONSTRAINT "movement_amount" CHECK ("amount" > 0),
  ADD CONSTRAINT "movement_sides" CHECK ("debit" <> "credit");
ALTER TABLE "merchant_balance"
  ADD CONSTRAINT "merchant_balance_available" CHECK ("available" >= 0),
  ADD CONSTRAINT "merchant_balance_reserved" CHECK ("reserved" >= 0);
ALTER TABLE "event" ADD CONSTRAINT "event_position" CHECK ("position" > 0);
ALTER TABLE "sandbox_clock" ADD CONSTRAINT "sandbox_clock_single" CHECK ("singleton");

-- What is reserved ends once: paid out or given back, never both.
CREATE UNIQUE INDEX "movement_reservation_end" ON "movement" ("cause") WHERE "step" IN ('post', 'void');

-- The two work lists: what to ask operators about, and what to number.
CREATE INDEX "operator_request_due" ON "operator_request" ("provider", "next_check_at") WHERE "next_check_at" IS NOT NULL;
CREATE INDEX "event_unnumbered" ON "event" ("id") WHERE "position" IS NULL;

-- Rows that change in place keep room beside them, so that a change touches no index.
ALTER TABLE "merchant_balance" SET (fillfactor = 50);
ALTER TABLE "stream_head" SET (fillfactor = 50);
ALTER TABLE "transaction" SET (fillfactor = 80);
ALTER TABLE "operator_request" SET (fillfactor = 70);

-- A crash may forget how often somebody asked.
ALTER TABLE "rate_limit" SET UNLOGGED;

-- The service's time: the machine's, moved by the sandbox clock where there is one.
CREATE FUNCTION service_now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT now() + coalesce((SELECT offset_ms FROM sandbox_clock), 0) * interval '1 millisecond'
$$;

-- Lifecycles: the rows of `states.ts`.
INSERT INTO "lifecycle_move" ("lifecycle", "from_status", "to_status") VALUES
  ('transaction', 'pending', 'processing'),
  ('transaction', 'pending', 'success'),
  ('transaction', 'pending', 'failed'),
  ('transaction', 'pending', 'cancelled'),
  ('transaction', 'pending', 'expired'),
  ('transaction', 'processing', 'success'),
  ('transaction', 'processing', 'failed'),
  ('transaction', 'success', 'reversed'),
  ('transaction', 'expired', 'success'),
  ('transaction', 'failed', 'success'),
  ('transaction', 'cancelled', 'success');

-- A transaction moves along its lifecycle only, and what it is about never changes.
CREATE FUNCTION guard_transaction() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (OLD.merchant_id, OLD.transaction_type, OLD.payment_method, OLD.customer_phone, OLD.amount, OLD.reference)
     IS DISTINCT FROM
     (NEW.merchant_id, NEW.transaction_type, NEW.payment_method, NEW.customer_phone, NEW.amount, NEW.reference) THEN
    RAISE EXCEPTION 'transaction %: what it is about never changes', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF OLD.status <> NEW.status AND NOT EXISTS (
    SELECT FROM public.lifecycle_move m
    WHERE m.lifecycle = 'transaction' AND m.from_status = OLD.status::text AND m.to_status = NEW.status::text
  ) THEN
    RAISE EXCEPTION 'transaction %: % never becomes %', OLD.id, OLD.status, NEW.status
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER "transaction_guard" BEFORE UPDATE ON "transaction" FOR EACH ROW EXECUTE FUNCTION guard_transaction();

-- History is only added to, whoever asks.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% on %: its rows are only added', TG_OP, TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER "movement_insert_only" BEFORE UPDATE OR DELETE OR TRUNCATE ON "movement"
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER "operator_exchange_insert_only" BEFORE UPDATE OR DELETE OR TRUNCATE ON "operator_exchange"
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER "operator_callback_insert_only" BEFORE UPDATE OR DELETE OR TRUNCATE ON "operator_callback"
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- What the service's role may do. Money, balances and events it can read; they are written by the functions of the
-- next two migrations and by nothing else.
GRANT USAGE ON SCHEMA public TO payments_service;
GRANT SELECT ON ALL TABLES IN SCHEMA public TO payments_service;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO payments_service;
GRANT INSERT, UPDATE ON "merchant", "api_key", "signing_key", "sandbox_clock" TO payments_service;
GRANT UPDATE ON "operator_request" TO payments_service;
GRANT UPDATE ("payment_url") ON "transaction" TO payments_service;
GRANT INSERT, UPDATE, DELETE ON "rate_limit" TO payments_service;
GRANT INSERT ON "operator_exchange", "operator_callback" TO payments_service;
