-- CreateTable
CREATE TABLE "transaction_count_change" (
    "merchant_id" INTEGER NOT NULL,
    "id" BIGSERIAL NOT NULL,
    "bucket" BIGINT NOT NULL,
    "transaction_type" "transaction_type" NOT NULL,
    "payment_method" "provider" NOT NULL,
    "status" "transaction_status" NOT NULL,
    "n" BIGINT NOT NULL,

    CONSTRAINT "transaction_count_change_pkey" PRIMARY KEY ("merchant_id","id")
);

-- CreateTable
CREATE TABLE "transaction_count" (
    "merchant_id" INTEGER NOT NULL,
    "transaction_type" "transaction_type" NOT NULL,
    "payment_method" "provider" NOT NULL,
    "status" "transaction_status" NOT NULL,
    "n" BIGINT NOT NULL,

    CONSTRAINT "transaction_count_pkey" PRIMARY KEY ("merchant_id","transaction_type","payment_method","status")
);

-- CreateTable
CREATE TABLE "transaction_block" (
    "merchant_id" INTEGER NOT NULL,
    "first_id" BIGINT NOT NULL,
    "last_id" BIGINT NOT NULL,
    "n" BIGINT NOT NULL,

    CONSTRAINT "transaction_block_pkey" PRIMARY KEY ("merchant_id","first_id")
);

-- CreateTable
CREATE TABLE "transaction_block_count" (
    "merchant_id" INTEGER NOT NULL,
    "first_id" BIGINT NOT NULL,
    "transaction_type" "transaction_type" NOT NULL,
    "payment_method" "provider" NOT NULL,
    "status" "transaction_status" NOT NULL,
    "n" BIGINT NOT NULL,

    CONSTRAINT "transaction_block_count_pkey" PRIMARY KEY ("merchant_id","first_id","transaction_type","payment_method","status")
);

-- CreateIndex
CREATE INDEX "transaction_merchant_id_customer_phone_id_idx" ON "transaction"("merchant_id", "customer_phone", "id");

-- CreateIndex
CREATE INDEX "transaction_merchant_id_created_at_idx" ON "transaction"("merchant_id", "created_at");

-- Below: written by hand. What the schema language cannot say.

-- The exact total of a list, and any page of it, without counting its rows. Every statement that adds or moves
-- transactions adds what that changed in their numbers; a job adds these changes to the counts. Nobody updates a row that
-- another statement needs, so nobody waits and nothing can deadlock; at every moment the counts and the changes that are
-- not yet added give the exact number together.
ALTER TABLE "transaction_count_change" SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
ALTER TABLE "transaction_count" SET (fillfactor = 50);
ALTER TABLE "transaction_block" SET (fillfactor = 70);
ALTER TABLE "transaction_block_count" SET (fillfactor = 70);

CREATE FUNCTION count_transactions() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO transaction_count_change (merchant_id, bucket, transaction_type, payment_method, status, n)
    SELECT merchant_id, id / 1024, transaction_type, payment_method, status, count(*) FROM inserted
    GROUP BY 1, 2, 3, 4, 5 ORDER BY 2;
  ELSIF TG_OP = 'UPDATE' THEN
    INSERT INTO transaction_count_change (merchant_id, bucket, transaction_type, payment_method, status, n)
    SELECT merchant_id, id / 1024, transaction_type, payment_method, status, sum(n)
    FROM (
      SELECT merchant_id, id, transaction_type, payment_method, status, 1 AS n FROM inserted
      UNION ALL SELECT merchant_id, id, transaction_type, payment_method, status, -1 FROM deleted
    ) AS moved
    GROUP BY 1, 2, 3, 4, 5 HAVING sum(n) <> 0 ORDER BY 2;
  ELSE
    INSERT INTO transaction_count_change (merchant_id, bucket, transaction_type, payment_method, status, n)
    SELECT merchant_id, id / 1024, transaction_type, payment_method, status, -count(*) FROM deleted
    GROUP BY 1, 2, 3, 4, 5 ORDER BY 2;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER "transaction_inserted" AFTER INSERT ON "transaction" REFERENCING NEW TABLE AS inserted
  FOR EACH STATEMENT EXECUTE FUNCTION count_transactions();
CREATE TRIGGER "transaction_updated" AFTER UPDATE ON "transaction" REFERENCING NEW TABLE AS inserted OLD TABLE AS deleted
  FOR EACH STATEMENT EXECUTE FUNCTION count_transactions();
CREATE TRIGGER "transaction_deleted" AFTER DELETE ON "transaction" REFERENCING OLD TABLE AS deleted
  FOR EACH STATEMENT EXECUTE FUNCTION count_transactions();

-- Adds up to `take` changes to the counts; one caller at a time, the others find nothing to do.
-- A block takes what comes after it until it has some 2,048 rows; then the next one begins, behind all that was counted
-- before. What is committed later under a smaller id belongs to the block in whose stretch it lies.
CREATE FUNCTION fold_transaction_counts(take int) RETURNS int LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  folded int;
BEGIN
  IF NOT pg_try_advisory_xact_lock(72707374) THEN RETURN 0; END IF;
  WITH taken AS (
    DELETE FROM transaction_count_change c
    USING (SELECT merchant_id, id FROM transaction_count_change ORDER BY merchant_id, id LIMIT take) AS chosen
    WHERE c.merchant_id = chosen.merchant_id AND c.id = chosen.id
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
    INSERT INTO transaction_block AS k (merchant_id, first_id, last_id, n)
    SELECT merchant_id, block, max(first_id) + 1023, sum(n) FROM placed GROUP BY merchant_id, block
    ON CONFLICT (merchant_id, first_id) DO UPDATE
      SET last_id = greatest(k.last_id, excluded.last_id), n = k.n + excluded.n
      WHERE excluded.n <> 0 OR excluded.last_id > k.last_id
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
  )
  SELECT count(*) INTO folded FROM taken;
  RETURN folded;
END $$;

-- The proof: counts and blocks against the transactions themselves, in one snapshot. No row means that they agree.
CREATE FUNCTION verify_transaction_counts() RETURNS TABLE (merchant_id int, problem text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH stretch AS (
    SELECT b.merchant_id, b.first_id, b.n,
      lead(b.first_id) OVER (PARTITION BY b.merchant_id ORDER BY b.first_id) AS next_id
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

GRANT SELECT ON "transaction_count_change", "transaction_count", "transaction_block", "transaction_block_count"
  TO payments_service;
REVOKE EXECUTE ON FUNCTION count_transactions, fold_transaction_counts, verify_transaction_counts FROM PUBLIC;
GRANT EXECUTE ON FUNCTION fold_transaction_counts, verify_transaction_counts TO payments_service;

-- What is there already. The triggers above hold off every writer until this is committed.
INSERT INTO "transaction_count_change" ("merchant_id", "bucket", "transaction_type", "payment_method", "status", "n")
SELECT "merchant_id", "id" / 1024, "transaction_type", "payment_method", "status", count(*) FROM "transaction"
GROUP BY 1, 2, 3, 4, 5 ORDER BY 2;
SELECT fold_transaction_counts(2147483647);
