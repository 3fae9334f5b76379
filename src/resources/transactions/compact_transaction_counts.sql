-- Adds up to `take` changes to the counts, then updates the offsets of the changed blocks and of the blocks
-- after them. Only one caller at a time does this; the others return 0 at once. Rows with ids after the last
-- block join this block until it has about 2,048 rows; then a new block begins. A row that is committed later
-- with an id in the range of an older block is counted in that block.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION compact_transaction_counts(take int) RETURNS int LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = public, pg_temp
SET enable_nestloop = off AS $$
DECLARE
  compacted int;
  merchants int[];
  changed_from bigint[];
BEGIN
  IF NOT pg_try_advisory_xact_lock(72707374) THEN RETURN 0; END IF;
  WITH taken AS (
    DELETE FROM transaction_count_change c
    WHERE c.ctid = ANY (ARRAY(SELECT ctid FROM transaction_count_change ORDER BY merchant_id, id LIMIT take))
    RETURNING c.*
  ), bucket AS (
    SELECT merchant_id, bucket * 1024 AS first_id, sum(n)::bigint AS n FROM taken GROUP BY merchant_id, bucket
  ), last_block AS (
    SELECT merchant.merchant_id, coalesce(b.first_id, 0) AS first_id, coalesce(b.last_id, -1) AS last_id,
      coalesce(b.n, 0) AS n
    FROM (SELECT DISTINCT merchant_id FROM taken) AS merchant
    LEFT JOIN LATERAL (
      SELECT * FROM transaction_block k WHERE k.merchant_id = merchant.merchant_id ORDER BY k.first_id DESC
        LIMIT 1
    ) AS b ON true
  ), ahead AS (
    SELECT bucket.*, l.first_id AS last_first_id,
      div(l.n + sum(bucket.n) OVER (PARTITION BY merchant_id ORDER BY bucket.first_id) - bucket.n,
        2048) AS nth
    FROM bucket JOIN last_block l USING (merchant_id) WHERE bucket.first_id > l.last_id
  ), numbered AS (
    SELECT merchant_id, first_id, n,
      CASE WHEN nth = 0 THEN last_first_id ELSE min(first_id)
        OVER (PARTITION BY merchant_id, nth) END AS block
    FROM ahead
    UNION ALL
    SELECT bucket.merchant_id, bucket.first_id, bucket.n, (
      SELECT max(k.first_id) FROM transaction_block k
      WHERE k.merchant_id = bucket.merchant_id AND k.first_id <= bucket.first_id)
    FROM bucket JOIN last_block l USING (merchant_id) WHERE bucket.first_id <= l.last_id
  ), blocks AS (
    INSERT INTO transaction_block AS k (merchant_id, first_id, last_id, n, n_before)
    SELECT merchant_id, block, max(first_id) + 1023, sum(n), 0 FROM numbered GROUP BY merchant_id, block
    ON CONFLICT (merchant_id, first_id) DO UPDATE
      SET last_id = greatest(k.last_id, excluded.last_id), n = k.n + excluded.n
      WHERE excluded.n <> 0 OR excluded.last_id > k.last_id
    RETURNING k.merchant_id, k.first_id
  ), block_counts AS (
    INSERT INTO transaction_block_count AS k (merchant_id, first_id, transaction_type, payment_method,
      status, n)
    SELECT t.merchant_id, p.block, t.transaction_type, t.payment_method, t.status, sum(t.n)
    FROM taken t JOIN numbered p ON p.merchant_id = t.merchant_id AND p.first_id = t.bucket * 1024
    GROUP BY 1, 2, 3, 4, 5 HAVING sum(t.n) <> 0
    ORDER BY 1, 2
    ON CONFLICT (merchant_id, first_id, transaction_type, payment_method, status) DO UPDATE
      SET n = k.n + excluded.n
  ), counts AS (
    INSERT INTO transaction_count AS k (merchant_id, transaction_type, payment_method, status, n)
    SELECT merchant_id, transaction_type, payment_method, status, sum(n) FROM taken
    GROUP BY 1, 2, 3, 4 HAVING sum(n) <> 0
    ON CONFLICT (merchant_id, transaction_type, payment_method, status) DO UPDATE SET n = k.n + excluded.n
  ), hours AS (
    INSERT INTO transaction_hour AS k (merchant_id, hour, transaction_type, payment_method, status, n, amount,
      settled_amount, first_bucket, last_bucket)
    SELECT merchant_id, hour, transaction_type, payment_method, status, sum(n), sum(amount),
      sum(settled_amount), min(bucket), max(bucket)
    FROM taken GROUP BY 1, 2, 3, 4, 5 HAVING sum(n) <> 0 OR sum(amount) <> 0 OR sum(settled_amount) <> 0
    ORDER BY 1, 2
    ON CONFLICT (merchant_id, hour, transaction_type, payment_method, status) DO UPDATE
      SET n = k.n + excluded.n, amount = k.amount + excluded.amount,
        settled_amount = k.settled_amount + excluded.settled_amount,
        first_bucket = least(k.first_bucket, excluded.first_bucket),
        last_bucket = greatest(k.last_bucket, excluded.last_bucket)
  ), figures AS (
    INSERT INTO payment_figure AS k (merchant_id, hours, start, kind, payment_method, status, failure_reason,
      n, amount, settled_amount)
    SELECT merchant_id, hours, date_bin(hours * interval '1 hour', hour, '2000-01-01 UTC'),
      transaction_type::text::payment_kind, payment_method, status, failure_reason, sum(n), sum(amount),
      sum(settled_amount)
    FROM taken CROSS JOIN (VALUES (1), (24)) AS s (hours)
    WHERE transaction_type <> 'balance_check'
    GROUP BY 1, 2, 3, 4, 5, 6, 7 HAVING sum(n) <> 0 OR sum(amount) <> 0 OR sum(settled_amount) <> 0
    ORDER BY 1, 2, 3
    ON CONFLICT (merchant_id, hours, start, kind, payment_method, status, failure_reason) DO UPDATE
      SET n = k.n + excluded.n, amount = k.amount + excluded.amount,
        settled_amount = k.settled_amount + excluded.settled_amount
  ), times AS (
    INSERT INTO settle_time AS k (merchant_id, hours, start, kind, payment_method, settle_class, n)
    SELECT merchant_id, hours, date_bin(hours * interval '1 hour', hour, '2000-01-01 UTC'),
      transaction_type::text::payment_kind, payment_method, settle_class, sum(n)
    FROM taken CROSS JOIN (VALUES (1), (24)) AS s (hours)
    WHERE settle_class > 0 AND transaction_type <> 'balance_check'
    GROUP BY 1, 2, 3, 4, 5, 6 HAVING sum(n) <> 0 ORDER BY 1, 2, 3
    ON CONFLICT (merchant_id, hours, start, kind, payment_method, settle_class) DO UPDATE
      SET n = k.n + excluded.n
  ), links AS (
    INSERT INTO link_figure AS k (merchant_id, payment_link_id, status, settle_class, n, amount,
      settled_amount)
    SELECT merchant_id, payment_link_id, status, settle_class, sum(n), sum(amount), sum(settled_amount)
    FROM taken WHERE payment_link_id IS NOT NULL
    GROUP BY 1, 2, 3, 4 HAVING sum(n) <> 0 OR sum(amount) <> 0 OR sum(settled_amount) <> 0 ORDER BY 1, 2
    ON CONFLICT (merchant_id, payment_link_id, status, settle_class) DO UPDATE
      SET n = k.n + excluded.n, amount = k.amount + excluded.amount,
        settled_amount = k.settled_amount + excluded.settled_amount
  ), changed AS (
    SELECT merchant_id, min(first_id) AS first_id FROM blocks GROUP BY merchant_id
  )
  SELECT (SELECT count(*) FROM taken), array_agg(merchant_id), array_agg(first_id)
  INTO compacted, merchants, changed_from FROM changed;
  PERFORM update_block_offsets(merchants, changed_from);
  RETURN compacted;
END $$;
