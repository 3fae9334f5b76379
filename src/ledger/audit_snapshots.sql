-- Proves snapshots of past balances: each must equal the snapshot before it plus the entries in between.
CREATE OR REPLACE FUNCTION audit_snapshots(ids bigint[]) RETURNS TABLE (
  invariant text,
  merchant_id int,
  problem text
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT 'balances_equal_entries', s.merchant_id,
    format('the snapshot of %s says %s, %s, %s, in %s, out %s; its entries say %s, %s, %s, in %s, out %s',
      s.at, s.available, s.reserved, s.receivable, s.total_in, s.total_out,
      b.available, b.reserved, b.receivable, b.total_in, b.total_out)
  FROM balance_snapshot s, balance_before(s.merchant_id, s.at) AS b
  WHERE s.id = ANY (ids) AND (s.available, s.reserved, s.receivable, s.total_in, s.total_out)
    <> (b.available, b.reserved, b.receivable, b.total_in, b.total_out)
$$;
