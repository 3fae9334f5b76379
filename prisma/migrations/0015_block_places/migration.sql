-- AlterTable
-- Filled in below, then it must be given.
ALTER TABLE "transaction_block" ADD COLUMN     "n_before" BIGINT NOT NULL DEFAULT 0;

-- CreateIndex
CREATE INDEX "transaction_block_merchant_id_n_before_idx" ON "transaction_block"("merchant_id", "n_before");

-- Below: written by hand. What the schema language cannot say.

-- A page lies where it lies at the same cost, however long the list is: a block knows how many rows come before it, so the
-- one with the page's first row is looked up, and that row is some entries of an index further on. Rows are hardly ever
-- added anywhere but at the end, so few blocks have to learn that more comes before them.

-- Says to each of these merchants' blocks, from the given one on, how many rows come before it.
-- Few blocks of many: they are joined by their keys, whatever the statistics say.
CREATE FUNCTION place_blocks(merchants int[], changed_from bigint[]) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp SET enable_hashjoin = off SET enable_mergejoin = off AS $$
  UPDATE transaction_block k SET n_before = told.n_before
  FROM (
    SELECT b.merchant_id, b.first_id,
      coalesce(previous.n, 0) + sum(b.n) OVER (PARTITION BY b.merchant_id ORDER BY b.first_id) - b.n AS n_before
    FROM unnest(merchants, changed_from) AS changed (merchant_id, first_id)
    JOIN transaction_block b ON b.merchant_id = changed.merchant_id AND b.first_id >= changed.first_id
    LEFT JOIN LATERAL (
      SELECT p.n_before + p.n AS n FROM transaction_block p
      WHERE p.merchant_id = changed.merchant_id AND p.first_id < changed.first_id ORDER BY p.first_id DESC LIMIT 1
    ) AS previous ON true
  ) AS told
  WHERE k.merchant_id = told.merchant_id AND k.first_id = told.first_id AND k.n_before <> told.n_before
$$;

-- As before; then the blocks that changed, and what comes after them, are placed.
CREATE OR REPLACE FUNCTION fold_transaction_counts(take int) RETURNS int LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
SET enable_nestloop = off AS $$
DECLARE
  folded int;
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
    SELECT merchant.merchant_id, coalesce(b.first_id, 0) AS first_id, coalesce(b.last_id, -1) AS last_id, coalesce(b.n, 0) AS n
    FROM (SELECT DISTINCT merchant_id FROM taken) AS merchant
    LEFT JOIN LATERAL (
      SELECT * FROM transaction_block k WHERE k.merchant_id = merchant.merchant_id ORDER BY k.first_id DESC LIMIT 1
    ) AS b ON true
  ), ahead AS (
    SELECT bucket.*, l.first_id AS last_first_id,
      div(l.n + sum(bucket.n) OVER (PARTITION BY merchant_id ORDER BY bucket.first_id) - bucket.n, 2048) AS nth
    FROM bucket JOIN last_block l USING (merchant_id) WHERE bucket.first_id > l.last_id
  ), placed AS (
    SELECT merchant_id, first_id, n,
      CASE WHEN nth = 0 THEN last_first_id ELSE min(first_id) OVER (PARTITION BY merchant_id, nth) END AS block
    FROM ahead
    UNION ALL
    SELECT bucket.merchant_id, bucket.first_id, bucket.n, (
      SELECT max(k.first_id) FROM transaction_block k
      WHERE k.merchant_id = bucket.merchant_id AND k.first_id <= bucket.first_id)
    FROM bucket JOIN last_block l USING (merchant_id) WHERE bucket.first_id <= l.last_id
  ), blocks AS (
    INSERT INTO transaction_block AS k (merchant_id, first_id, last_id, n, n_before)
    SELECT merchant_id, block, max(first_id) + 1023, sum(n), 0 FROM placed GROUP BY merchant_id, block
    ON CONFLICT (merchant_id, first_id) DO UPDATE
      SET last_id = greatest(k.last_id, excluded.last_id), n = k.n + excluded.n
      WHERE excluded.n <> 0 OR excluded.last_id > k.last_id
    RETURNING k.merchant_id, k.first_id
  ), block_counts AS (
    INSERT INTO transaction_block_count AS k (merchant_id, first_id, transaction_type, payment_method, status, n)
    SELECT t.merchant_id, p.block, t.transaction_type, t.payment_method, t.status, sum(t.n)
    FROM taken t JOIN placed p ON p.merchant_id = t.merchant_id AND p.first_id = t.bucket * 1024
    GROUP BY 1, 2, 3, 4, 5 HAVING sum(t.n) <> 0
    ON CONFLICT (merchant_id, first_id, transaction_type, payment_method, status) DO UPDATE SET n = k.n + excluded.n
  ), counts AS (
    INSERT INTO transaction_count AS k (merchant_id, transaction_type, payment_method, status, n)
    SELECT merchant_id, transaction_type, payment_method, status, sum(n) FROM taken
    GROUP BY 1, 2, 3, 4 HAVING sum(n) <> 0
    ON CONFLICT (merchant_id, transaction_type, payment_method, status) DO UPDATE SET n = k.n + excluded.n
  ), changed AS (
    SELECT merchant_id, min(first_id) AS first_id FROM blocks GROUP BY merchant_id
  )
  SELECT (SELECT count(*) FROM taken), array_agg(merchant_id), array_agg(first_id)
  INTO folded, merchants, changed_from FROM changed;
  PERFORM place_blocks(merchants, changed_from);
  RETURN folded;
END $$;

-- As before, and where each block says that it lies.
CREATE OR REPLACE FUNCTION verify_transaction_counts() RETURNS TABLE (merchant_id int, problem text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH stretch AS (
    SELECT b.merchant_id, b.first_id, b.n, b.n_before,
      lead(b.first_id) OVER (PARTITION BY b.merchant_id ORDER BY b.first_id) AS next_id,
      sum(b.n) OVER (PARTITION BY b.merchant_id ORDER BY b.first_id) - b.n AS before
    FROM transaction_block b
  ), told AS (
    SELECT k.merchant_id, k.first_id, k.transaction_type, k.payment_method, k.status, k.n FROM transaction_block_count k
    UNION ALL
    SELECT c.merchant_id, coalesce(s.first_id, 0), c.transaction_type, c.payment_method, c.status, c.n
    FROM transaction_count_change c LEFT JOIN stretch s ON s.merchant_id = c.merchant_id
      AND c.bucket * 1024 >= s.first_id AND (s.next_id IS NULL OR c.bucket * 1024 < s.next_id)
  ), real AS (
    SELECT t.merchant_id, coalesce(s.first_id, 0) AS first_id, t.transaction_type, t.payment_method, t.status, count(*) AS n
    FROM transaction t LEFT JOIN stretch s ON s.merchant_id = t.merchant_id
      AND t.id >= s.first_id AND (s.next_id IS NULL OR t.id < s.next_id)
    GROUP BY 1, 2, 3, 4, 5
  ), difference AS (
    SELECT merchant_id, first_id, transaction_type, payment_method, status, sum(n) AS n
    FROM (
      SELECT * FROM told
      UNION ALL SELECT r.merchant_id, r.first_id, r.transaction_type, r.payment_method, r.status, -r.n FROM real r
    ) AS either
    GROUP BY 1, 2, 3, 4, 5 HAVING sum(n) <> 0
  )
  SELECT d.merchant_id, format('block %s: %s too many of %s, %s, %s', d.first_id, d.n, d.transaction_type, d.payment_method, d.status)
  FROM difference d
  UNION ALL
  SELECT s.merchant_id, format('block %s says %s rows; its kinds say %s', s.first_id, s.n, coalesce(k.n, 0))
  FROM stretch s LEFT JOIN (
    SELECT k.merchant_id, k.first_id, sum(k.n) AS n FROM transaction_block_count k GROUP BY 1, 2
  ) AS k ON k.merchant_id = s.merchant_id AND k.first_id = s.first_id
  WHERE s.n <> coalesce(k.n, 0)
  UNION ALL
  SELECT s.merchant_id, format('block %s says that %s rows come before it; there are %s', s.first_id, s.n_before, s.before)
  FROM stretch s WHERE s.n_before <> s.before
  UNION ALL
  SELECT coalesce(c.merchant_id, k.merchant_id), format('%s, %s, %s: counted %s, in blocks %s',
    coalesce(c.transaction_type, k.transaction_type), coalesce(c.payment_method, k.payment_method), coalesce(c.status, k.status),
    coalesce(c.n, 0), coalesce(k.n, 0))
  FROM transaction_count c FULL JOIN (
    SELECT k.merchant_id, k.transaction_type, k.payment_method, k.status, sum(k.n) AS n FROM transaction_block_count k
    GROUP BY 1, 2, 3, 4
  ) AS k ON (k.merchant_id, k.transaction_type, k.payment_method, k.status)
    = (c.merchant_id, c.transaction_type, c.payment_method, c.status)
  WHERE coalesce(c.n, 0) <> coalesce(k.n, 0)
$$;

-- The id of the row behind `skip` others of a merchant's list, newest first; null where the list ends before it.
-- Rows and counts are read as of one moment, the calling statement's (that is what STABLE means), so the place is exact
-- whatever is written meanwhile; and with the caller's own rights, so that the walls hold. Behind a wall an index takes
-- bare values only, no expressions of them. One plan does for every depth.
CREATE FUNCTION transaction_at(merchant int, skip bigint) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan SET enable_sort = off AS $$
DECLARE
  place bigint;
  passed bigint;
  block bigint;
  uncounted_from bigint;
BEGIN
  -- Counted from the oldest row on, what is not yet added to the blocks included.
  SELECT sum(c.n), min(c.bucket) * 1024 INTO place, uncounted_from
  FROM transaction_count_change c WHERE c.merchant_id = merchant;
  place := coalesce(place, 0) - skip + coalesce((
    SELECT b.n_before + b.n FROM transaction_block b WHERE b.merchant_id = merchant ORDER BY b.first_id DESC LIMIT 1), 0);
  IF place < 1 THEN RETURN NULL; END IF;
  SELECT b.first_id, b.n_before + uncounted.n INTO block, passed
  FROM transaction_block b, LATERAL (
    SELECT CASE WHEN b.first_id > uncounted_from THEN (
      SELECT coalesce(sum(c.n), 0)::bigint FROM transaction_count_change c
      WHERE c.merchant_id = merchant AND c.bucket < b.first_id / 1024) ELSE 0 END AS n
  ) AS uncounted
  WHERE b.merchant_id = merchant AND b.n_before < place AND b.n_before + uncounted.n < place
  ORDER BY b.n_before DESC LIMIT 1;
  IF NOT FOUND THEN block := 0; passed := 0; END IF;
  RETURN (
    SELECT t.id FROM transaction t WHERE t.merchant_id = merchant AND t.id >= block
    ORDER BY t.id LIMIT 1 OFFSET place - passed - 1);
END $$;

-- The same for the rows of a kind, which come and go anywhere: their blocks are counted down from the newest one.
-- `oldest` is at most the id of the `take`-th row of the page.
CREATE FUNCTION transaction_of_kind_at(
  merchant int, type transaction_type, method provider, state transaction_status, skip bigint, take bigint
) RETURNS TABLE (oldest bigint, newest bigint) LANGUAGE plpgsql STABLE SET search_path = public, pg_temp AS $$
DECLARE
  rest bigint;
  block bigint;
  next_block bigint;
BEGIN
  SELECT min(first_id), max(first_id), skip - min(newer) INTO oldest, block, rest
  FROM (
    SELECT first_id, n, (sum(n) OVER (ORDER BY first_id DESC))::bigint - n AS newer
    FROM (
      SELECT first_id, sum(n)::bigint AS n
      FROM (
        SELECT k.first_id, k.n FROM transaction_block_count k
        WHERE k.merchant_id = merchant AND (type IS NULL OR k.transaction_type = type)
          AND (method IS NULL OR k.payment_method = method) AND (state IS NULL OR k.status = state)
        UNION ALL
        SELECT coalesce((
          SELECT max(b.first_id) FROM transaction_block b
          WHERE b.merchant_id = merchant AND b.first_id <= c.bucket * 1024), 0), c.n
        FROM transaction_count_change c
        WHERE c.merchant_id = merchant AND (type IS NULL OR c.transaction_type = type)
          AND (method IS NULL OR c.payment_method = method) AND (state IS NULL OR c.status = state)
      ) AS counted
      GROUP BY first_id HAVING sum(n) > 0
    ) AS blocks
  ) AS placed
  WHERE newer < skip + take AND newer + n > skip;
  IF block IS NULL THEN RETURN; END IF;
  next_block := coalesce((
    SELECT b.first_id FROM transaction_block b
    WHERE b.merchant_id = merchant AND b.first_id > block ORDER BY b.first_id LIMIT 1), 9223372036854775807);
  newest := (
    SELECT t.id FROM transaction t
    WHERE t.merchant_id = merchant AND t.id >= block AND t.id < next_block
      AND (type IS NULL OR t.transaction_type = type) AND (method IS NULL OR t.payment_method = method)
      AND (state IS NULL OR t.status = state)
    ORDER BY t.id DESC LIMIT 1 OFFSET rest);
  RETURN NEXT;
END $$;

REVOKE EXECUTE ON FUNCTION place_blocks, transaction_at, transaction_of_kind_at FROM PUBLIC;
GRANT EXECUTE ON FUNCTION transaction_at, transaction_of_kind_at TO payments_service, payments_merchant;

-- The blocks that are there already.
SELECT place_blocks(array_agg("merchant_id"), array_agg("first_id")) FROM (
  SELECT "merchant_id", min("first_id") AS "first_id" FROM "transaction_block" GROUP BY "merchant_id") AS every;
ALTER TABLE "transaction_block" ALTER COLUMN "n_before" DROP DEFAULT;
