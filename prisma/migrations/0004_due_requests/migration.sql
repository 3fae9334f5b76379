-- What changes often and is looked up by an index leaves `operator_request`: the time at which a request is
-- asked about, and the calls under way. An update of a request then changes no index (it is a HOT update).

-- A due row: when to look at a request that the service asks about again (docs/design/requests.md#due-rows).
-- No foreign key: its check would lock the row of each new request once more, and no request is deleted.
CREATE TABLE "request_due" (
  "request_id" bigint NOT NULL,
  "merchant_id" integer NOT NULL,
  "provider" provider NOT NULL,
  "at" timestamptz(3) NOT NULL,
  CONSTRAINT "request_due_pkey" PRIMARY KEY (request_id)
);
CREATE INDEX request_due_provider_at_idx ON "request_due" (provider, at);

-- The requests for recipients of batches that are being sent: they take capacity of their batch and operator.
CREATE TABLE "recipient_call" (
  "request_id" bigint NOT NULL,
  "merchant_id" integer NOT NULL,
  "recipient_id" bigint NOT NULL,
  "provider" provider NOT NULL,
  "fence_until" timestamptz(3) NOT NULL,
  CONSTRAINT "recipient_call_pkey" PRIMARY KEY (request_id)
);
CREATE INDEX recipient_call_fence_until_idx ON "recipient_call" (fence_until);

-- Only functions that act as the owner read and write both tables.
ALTER TABLE "request_due" ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY "every_row" ON "request_due" TO payments_owner USING (true);
CREATE POLICY "every_merchant" ON "request_due" TO payments_service USING (true);
CREATE POLICY "tenant_isolation" ON "request_due" TO payments_merchant USING (merchant_id =
  (SELECT nullif(current_setting('app.merchant', true), '')::int));
ALTER TABLE "recipient_call" ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY "every_row" ON "recipient_call" TO payments_owner USING (true);
CREATE POLICY "every_merchant" ON "recipient_call" TO payments_service USING (true);
CREATE POLICY "tenant_isolation" ON "recipient_call" TO payments_merchant USING (merchant_id =
  (SELECT nullif(current_setting('app.merchant', true), '')::int));

INSERT INTO "recipient_call" (request_id, merchant_id, recipient_id, provider, fence_until)
SELECT id, merchant_id, recipient_id, provider, fence_until FROM "operator_request"
WHERE state = 'sending' AND recipient_id IS NOT NULL AND fence_until > now();
DROP INDEX operator_request_recipient_sending;

-- The index `operator_request_due` stays until the triggers exist that fill `request_due`: with it,
-- queue_requests.sql finds the earlier requests, and then drops it.

-- A payment out has no transaction, and a transaction no payout: an index holds no empty entries.
DROP INDEX operator_request_payout_id_key;
CREATE UNIQUE INDEX operator_request_payout_id_key ON "operator_request" (payout_id)
  WHERE (payout_id IS NOT NULL);
DROP INDEX operator_request_transaction_id_idx;
CREATE INDEX operator_request_transaction_id_idx ON "operator_request" (transaction_id)
  WHERE (transaction_id IS NOT NULL);

-- A request grows to three times its first size in about three updates, which all find room in its page.
ALTER TABLE "operator_request" SET (fillfactor = 30);
