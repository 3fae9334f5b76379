-- Returns a page of the lines of a statement, oldest first: the entries that change a merchant's balances,
-- with their changes and the balances right after them, in one snapshot. A page begins at a moment and an id.
-- Granted to payments_service and payments_merchant.
CREATE OR REPLACE FUNCTION statement_lines(
  merchant int,
  since timestamptz,
  first_id bigint,
  upto timestamptz,
  take int
) RETURNS TABLE (
  id bigint,
  origin text,
  step ledger_step,
  debit ledger_account,
  credit ledger_account,
  amount bigint,
  created_at timestamptz,
  available_change bigint,
  reserved_change bigint,
  receivable_change bigint,
  available bigint,
  reserved bigint,
  receivable bigint
)
LANGUAGE sql STABLE AS $$
  WITH page AS MATERIALIZED (
    SELECT e.*,
      CASE 'available'::ledger_account WHEN e.credit THEN e.amount WHEN e.debit THEN -e.amount
        ELSE 0 END AS available,
      CASE 'reserved'::ledger_account WHEN e.credit THEN e.amount WHEN e.debit THEN -e.amount
        ELSE 0 END AS reserved,
      -- The account `suspense` holds what the merchant owes, so debits add to it.
      CASE 'suspense'::ledger_account WHEN e.debit THEN e.amount WHEN e.credit THEN -e.amount
        ELSE 0 END AS receivable
    FROM ledger_entry e
    WHERE e.merchant_id = merchant AND (e.created_at, e.id) >= (since, first_id)
      AND e.created_at < coalesce(upto, 'infinity')
      AND (e.debit IN ('available', 'reserved', 'suspense')
        OR e.credit IN ('available', 'reserved', 'suspense'))
    ORDER BY e.created_at, e.id LIMIT take
  ), start AS (
    SELECT b.* FROM (SELECT p.created_at, p.id FROM page p ORDER BY p.created_at, p.id LIMIT 1) AS f,
      balance_before_entry(merchant, f.created_at, f.id) AS b
  )
  SELECT p.id, p.origin, p.step, p.debit, p.credit, p.amount, p.created_at,
    p.available, p.reserved, p.receivable,
    (s.available + sum(p.available) OVER steps)::bigint, (s.reserved + sum(p.reserved) OVER steps)::bigint,
    (s.receivable + sum(p.receivable) OVER steps)::bigint
  FROM page p, start s WINDOW steps AS (ORDER BY p.created_at, p.id) ORDER BY p.created_at, p.id
$$;
