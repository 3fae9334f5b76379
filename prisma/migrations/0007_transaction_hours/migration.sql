-- Counts and sums of the transactions of a merchant by the hour of their creation, so that a list of a
-- period has its exact total without reading its rows. The buckets (1,024 ids each) bound the rows' ids.
CREATE TABLE "transaction_hour" (
  "merchant_id" integer NOT NULL,
  "hour" timestamptz(3) NOT NULL,
  "transaction_type" transaction_type NOT NULL,
  "payment_method" provider NOT NULL,
  "status" transaction_status NOT NULL,
  "n" bigint NOT NULL,
  "amount" bigint NOT NULL,
  "settled_amount" bigint NOT NULL,
  "first_bucket" bigint NOT NULL,
  "last_bucket" bigint NOT NULL,
  CONSTRAINT "transaction_hour_pkey" PRIMARY KEY (merchant_id, hour, transaction_type, payment_method,
    status)
);
GRANT SELECT ON "transaction_hour" TO payments_merchant;
GRANT SELECT ON "transaction_hour" TO payments_service;
ALTER TABLE "transaction_hour" ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY "every_row" ON "transaction_hour" TO payments_owner USING (true);
CREATE POLICY "every_merchant" ON "transaction_hour" TO payments_service USING (true);
CREATE POLICY "tenant_isolation" ON "transaction_hour" TO payments_merchant USING (merchant_id =
  (SELECT nullif(current_setting('app.merchant', true), '')::int));

-- How far the transactions from before this migration are counted: all buckets before `next_bucket`, and all
-- from `end_bucket` on. `end_bucket` is null until the new functions count every change.
CREATE TABLE "transaction_hour_fill" (
  "singleton" boolean NOT NULL DEFAULT true,
  "next_bucket" bigint NOT NULL DEFAULT 0,
  "end_bucket" bigint,
  CONSTRAINT "transaction_hour_fill_pkey" PRIMARY KEY (singleton),
  CONSTRAINT "transaction_hour_fill_singleton" CHECK (singleton)
);
GRANT SELECT ON "transaction_hour_fill" TO payments_merchant;
GRANT SELECT ON "transaction_hour_fill" TO payments_service;
INSERT INTO "transaction_hour_fill" DEFAULT VALUES;

-- The hour is null in changes that the functions of the release before wrote.
ALTER TABLE "transaction_count_change" ADD COLUMN "hour" timestamptz(3),
  ADD COLUMN "amount" bigint NOT NULL DEFAULT 0, ADD COLUMN "settled_amount" bigint NOT NULL DEFAULT 0;
