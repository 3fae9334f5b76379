-- Returns a merchant's balances before an entry in the order of statements (by time, then by id), and the
-- sums of all changes until then that raised and lowered `available + reserved`: the newest snapshot before
-- the moment, plus the entries since.
-- Granted to payments_service and payments_merchant.
CREATE OR REPLACE FUNCTION balance_before_entry(
  merchant int,
  moment timestamptz,
  entry bigint
) RETURNS TABLE (
  available bigint,
  reserved bigint,
  receivable bigint,
  total_in bigint,
  total_out bigint
)
LANGUAGE sql STABLE AS $$
  SELECT (coalesce(s.available, 0) + coalesce(sum(m.available), 0))::bigint,
    (coalesce(s.reserved, 0) + coalesce(sum(m.reserved), 0))::bigint,
    (coalesce(s.receivable, 0) + coalesce(sum(m.receivable), 0))::bigint,
    (coalesce(s.total_in, 0) + coalesce(sum(greatest(m.available + m.reserved, 0)), 0))::bigint,
    (coalesce(s.total_out, 0) + coalesce(sum(greatest(-(m.available + m.reserved), 0)), 0))::bigint
  FROM (VALUES (true)) AS always
  LEFT JOIN LATERAL (
    SELECT s.* FROM balance_snapshot s WHERE s.merchant_id = balance_before_entry.merchant AND s.at < moment
    ORDER BY s.at DESC LIMIT 1
  ) AS s ON true
  LEFT JOIN LATERAL (
    SELECT
      CASE 'available'::ledger_account WHEN credit THEN amount WHEN debit THEN -amount
        ELSE 0 END AS available,
      CASE 'reserved'::ledger_account WHEN credit THEN amount WHEN debit THEN -amount
        ELSE 0 END AS reserved,
      -- The account `suspense` holds what the merchant owes, so debits add to it.
      CASE 'suspense'::ledger_account WHEN debit THEN amount WHEN credit THEN -amount
        ELSE 0 END AS receivable
    FROM ledger_entry e WHERE e.merchant_id = balance_before_entry.merchant
      AND e.created_at >= coalesce(s.at, '-infinity') AND (e.created_at, e.id) < (moment, entry)
  ) AS m ON true
  GROUP BY s.available, s.reserved, s.receivable, s.total_in, s.total_out
$$;
