-- Returns the id of the row after `skip` others of a merchant's list, newest first; null where the list is
-- shorter. STABLE makes this function read rows and counts in the snapshot of the calling statement, so the
-- result is exact despite concurrent writes. It runs with the caller's own rights, so that row-level security
-- holds. Under row-level security an index can be used only with plain values, not with expressions: so the
-- function computes these values first. The same plan is good for every `skip`.
-- Granted to payments_service and payments_merchant.
CREATE OR REPLACE FUNCTION transaction_at(merchant int, skip bigint) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan
  SET enable_sort = off AS $$
DECLARE
  ordinal bigint;
  passed bigint;
  block bigint;
  uncounted_from bigint;
BEGIN
  -- Count from the oldest row on, with the changes that are not yet added to the blocks.
  SELECT sum(c.n), min(c.bucket) * 1024 INTO ordinal, uncounted_from
  FROM transaction_count_change c WHERE c.merchant_id = merchant;
  ordinal := coalesce(ordinal, 0) - skip + coalesce((
    SELECT b.n_before + b.n FROM transaction_block b WHERE b.merchant_id = merchant ORDER BY b.first_id DESC
      LIMIT 1), 0);
  IF ordinal < 1 THEN RETURN NULL; END IF;
  SELECT b.first_id, b.n_before + uncounted.n INTO block, passed
  FROM transaction_block b, LATERAL (
    SELECT CASE WHEN b.first_id > uncounted_from THEN (
      SELECT coalesce(sum(c.n), 0)::bigint FROM transaction_count_change c
      WHERE c.merchant_id = merchant AND c.bucket < b.first_id / 1024) ELSE 0 END AS n
  ) AS uncounted
  WHERE b.merchant_id = merchant AND b.n_before < ordinal AND b.n_before + uncounted.n < ordinal
  ORDER BY b.n_before DESC LIMIT 1;
  IF NOT FOUND THEN block := 0; passed := 0; END IF;
  RETURN (
    SELECT t.id FROM transaction t WHERE t.merchant_id = merchant AND t.id >= block
    ORDER BY t.id LIMIT 1 OFFSET ordinal - passed - 1);
END $$;
