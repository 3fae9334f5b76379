-- Proves the counts of payouts of the merchants with ids above `after`, up to `upto`.
CREATE OR REPLACE FUNCTION audit_payout_counts(after int, upto int)
  RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan SET jit = off SET enable_seqscan = off AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT 'payouts_are_counted', merchant_id, format('%s %s payouts by %s are there, and %s counted',
    coalesce(there.n, 0), status, payment_method, coalesce(k.n, 0))
  FROM (SELECT k.* FROM payout_count k WHERE k.n <> 0 AND k.merchant_id > after
    AND k.merchant_id <= upto) AS k
  FULL JOIN (
    SELECT p.merchant_id, p.payment_method, p.status, count(*) AS n FROM payout p
    WHERE p.merchant_id > after AND p.merchant_id <= upto GROUP BY 1, 2, 3
  ) AS there USING (merchant_id, payment_method, status)
  WHERE k.n IS DISTINCT FROM there.n;
END $$;
