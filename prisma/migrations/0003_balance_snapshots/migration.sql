-- The balance of a merchant at a past moment, once per 256 of its entries, so that `statement` and
-- `balance(at)` read a bounded number of entries (see docs/design/ledger.md#past-balances).
CREATE TABLE "balance_snapshot" (
  "id" bigserial,
  "merchant_id" integer NOT NULL,
  "at" timestamptz(3) NOT NULL,
  "available" bigint NOT NULL,
  "reserved" bigint NOT NULL,
  "receivable" bigint NOT NULL,
  "total_in" bigint NOT NULL,
  "total_out" bigint NOT NULL,
  CONSTRAINT "balance_snapshot_pkey" PRIMARY KEY (id),
  CONSTRAINT "balance_snapshot_totals" CHECK (available + reserved = total_in - total_out)
);
CREATE UNIQUE INDEX balance_snapshot_merchant_id_at_key ON "balance_snapshot" (merchant_id, at);
GRANT SELECT ON "balance_snapshot" TO payments_merchant;
GRANT SELECT ON "balance_snapshot" TO payments_service;
ALTER TABLE "balance_snapshot" ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY "every_row" ON "balance_snapshot" TO payments_owner USING (true);
CREATE POLICY "every_merchant" ON "balance_snapshot" TO payments_service USING (true);
CREATE POLICY "tenant_isolation" ON "balance_snapshot" TO payments_merchant USING (merchant_id =
  (SELECT nullif(current_setting('app.merchant', true), '')::int));

ALTER TABLE "merchant_balance" ADD COLUMN "entries_since" integer NOT NULL DEFAULT 0,
  ADD COLUMN "snapshot_at" timestamptz(3);

ALTER TABLE "audit_pass" DROP CONSTRAINT "audit_pass_stage", ADD CONSTRAINT "audit_pass_stage"
  CHECK (stage = ANY (ARRAY['ledger_entry'::text, 'event'::text, 'position'::text, 'transaction'::text,
    'payout'::text, 'batch'::text, 'payment_link'::text, 'payout_count'::text, 'balance_snapshot'::text,
    'done'::text]));

-- The snapshots of the entries that exist already. The last day gets none: until the new functions are
-- applied, a transaction that began earlier may still write an entry with the time of its beginning, and no
-- transaction is open for a day.
INSERT INTO "balance_snapshot" (merchant_id, at, available, reserved, receivable, total_in, total_out)
SELECT merchant_id, created_at, available, reserved, receivable, total_in, total_out
FROM (
  SELECT merchant_id, created_at, n, sum(n) OVER earlier AS entries,
    sum(available) OVER earlier - available AS available, sum(reserved) OVER earlier - reserved AS reserved,
    sum(receivable) OVER earlier - receivable AS receivable,
    sum(total_in) OVER earlier - total_in AS total_in, sum(total_out) OVER earlier - total_out AS total_out
  FROM (
    SELECT merchant_id, created_at, count(*) AS n, sum(available) AS available, sum(reserved) AS reserved,
      sum(receivable) AS receivable, sum(greatest(available + reserved, 0)) AS total_in,
      sum(greatest(-(available + reserved), 0)) AS total_out
    FROM (
      SELECT merchant_id, created_at,
        CASE 'available'::ledger_account WHEN credit THEN amount WHEN debit THEN -amount ELSE 0 END
          AS available,
        CASE 'reserved'::ledger_account WHEN credit THEN amount WHEN debit THEN -amount ELSE 0 END
          AS reserved,
        CASE 'suspense'::ledger_account WHEN debit THEN amount WHEN credit THEN -amount ELSE 0 END
          AS receivable
      FROM "ledger_entry"
    ) AS entry GROUP BY merchant_id, created_at
  ) AS moment
  WINDOW earlier AS (PARTITION BY merchant_id ORDER BY created_at ROWS UNBOUNDED PRECEDING)
) AS moment
WHERE div(entries, 256) > div(entries - n, 256)
  AND created_at < now() + coalesce((SELECT offset_ms FROM "sandbox_clock"), 0) * interval '1 millisecond'
    - interval '1 day';

UPDATE "merchant_balance" b SET snapshot_at = newest.at, entries_since = (SELECT count(*)
  FROM "ledger_entry" m WHERE m.merchant_id = b.merchant_id AND m.created_at >= newest.at)
FROM (SELECT merchant_id, max(at) AS at FROM "balance_snapshot" GROUP BY merchant_id) AS newest
WHERE newest.merchant_id = b.merchant_id;
