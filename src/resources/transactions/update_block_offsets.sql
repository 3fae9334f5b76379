-- Sets `n_before`, the number of rows before a block, for the blocks of each merchant from `changed_from` on.
-- Hash joins and merge joins are off: usually only a few of many blocks change, but the statistics may not
-- show this.
CREATE OR REPLACE FUNCTION update_block_offsets(merchants int[], changed_from bigint[]) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp SET enable_hashjoin = off
  SET enable_mergejoin = off AS $$
  UPDATE transaction_block k SET n_before = counted.n_before
  FROM (
    SELECT b.merchant_id, b.first_id,
      coalesce(previous.n, 0) + sum(b.n) OVER (PARTITION BY b.merchant_id
        ORDER BY b.first_id) - b.n AS n_before
    FROM unnest(merchants, changed_from) AS changed (merchant_id, first_id)
    JOIN transaction_block b ON b.merchant_id = changed.merchant_id AND b.first_id >= changed.first_id
    LEFT JOIN LATERAL (
      SELECT p.n_before + p.n AS n FROM transaction_block p
      WHERE p.merchant_id = changed.merchant_id AND p.first_id < changed.first_id ORDER BY p.first_id DESC
        LIMIT 1
    ) AS previous ON true
  ) AS counted
  WHERE k.merchant_id = counted.merchant_id AND k.first_id = counted.first_id
    AND k.n_before <> counted.n_before
$$;
