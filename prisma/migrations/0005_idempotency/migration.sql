-- CreateTable
CREATE TABLE "idempotency_key" (
    "merchant_id" INTEGER NOT NULL,
    "operation" TEXT NOT NULL,
    "key" TEXT NOT NULL,
    "digest" BYTEA NOT NULL,
    "effect" BYTEA NOT NULL,
    "claim" INTEGER NOT NULL DEFAULT 1,
    "locked_until" TIMESTAMPTZ(3),
    "answer" BYTEA,
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "idempotency_key_pkey" PRIMARY KEY ("merchant_id","operation","key")
);

-- CreateIndex
CREATE INDEX "idempotency_key_created_at_idx" ON "idempotency_key"("created_at");

-- AddForeignKey
ALTER TABLE "idempotency_key" ADD CONSTRAINT "idempotency_key_merchant_id_fkey" FOREIGN KEY ("merchant_id") REFERENCES "merchant"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

ALTER TABLE "idempotency_key"
  ADD CONSTRAINT "idempotency_key_sizes" CHECK (length(key) BETWEEN 1 AND 255 AND length(digest) = 32 AND length(effect) = 16);

-- Takes the right to run what stands under a key. `outcome` is `begun` (it is new), `resumed` (somebody began it and is
-- gone, or could not say how it ended: the same effect goes on), `running`, `answered`, or `reused` for something else.
-- What has expired is new again.
CREATE FUNCTION claim_idempotency_key(
  merchant int, named_operation text, given_key text, given_digest bytea, new_effect bytea, lease_ms int, lifetime_ms bigint
) RETURNS TABLE (outcome text, effect bytea, claim int, since timestamptz, answer bytea)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  kept idempotency_key;
  lease timestamptz := clock_timestamp() + lease_ms * interval '1 millisecond';
BEGIN
  FOR round IN 1..10 LOOP
    INSERT INTO idempotency_key AS k (merchant_id, operation, key, digest, effect, locked_until, created_at)
    VALUES (merchant, named_operation, given_key, given_digest, new_effect, lease, service_now())
    ON CONFLICT ON CONSTRAINT idempotency_key_pkey DO UPDATE
    SET digest = excluded.digest, effect = excluded.effect, claim = k.claim + 1, locked_until = excluded.locked_until,
      answer = NULL, created_at = excluded.created_at
    WHERE k.created_at <= service_now() - lifetime_ms * interval '1 millisecond'
    RETURNING k.* INTO kept;
    IF FOUND THEN
      RETURN QUERY SELECT 'begun', kept.effect, kept.claim, kept.created_at, NULL::bytea;
      RETURN;
    END IF;
    SELECT k.* INTO kept FROM idempotency_key k
    WHERE k.merchant_id = merchant AND k.operation = named_operation AND k.key = given_key FOR UPDATE;
    -- Given back in between: it is free again.
    CONTINUE WHEN NOT FOUND;
    IF kept.digest = given_digest AND kept.answer IS NULL AND (kept.locked_until > clock_timestamp()) IS NOT TRUE THEN
      UPDATE idempotency_key k SET claim = k.claim + 1, locked_until = lease
      WHERE k.merchant_id = merchant AND k.operation = named_operation AND k.key = given_key
      RETURNING k.* INTO kept;
      RETURN QUERY SELECT 'resumed', kept.effect, kept.claim, kept.created_at, NULL::bytea;
      RETURN;
    END IF;
    RETURN QUERY SELECT CASE WHEN kept.digest <> given_digest THEN 'reused' WHEN kept.answer IS NULL THEN 'running'
      ELSE 'answered' END, kept.effect, kept.claim, kept.created_at,
      CASE WHEN kept.digest = given_digest THEN kept.answer END;
    RETURN;
  END LOOP;
  RETURN QUERY SELECT 'running', NULL::bytea, NULL::int, NULL::timestamptz, NULL::bytea;
END $$;

-- Ends a claim that nobody has taken over: keeps the answer; or gives the key back, as if it had never been used; or,
-- with neither, lets the next one go on with it.
CREATE FUNCTION end_idempotency_claim(
  merchant int, named_operation text, given_key text, claimed int, given_answer bytea, give_back boolean
) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  IF give_back THEN
    DELETE FROM idempotency_key k
    WHERE k.merchant_id = merchant AND k.operation = named_operation AND k.key = given_key AND k.claim = claimed
      AND k.answer IS NULL;
  ELSE
    UPDATE idempotency_key k SET answer = given_answer, locked_until = NULL
    WHERE k.merchant_id = merchant AND k.operation = named_operation AND k.key = given_key AND k.claim = claimed
      AND k.answer IS NULL;
  END IF;
END $$;

-- Forgets the keys that have expired, a bounded number at a time. Those in use at this moment are passed over.
CREATE FUNCTION sweep_idempotency_keys(lifetime_ms bigint, most int) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH gone AS (
    DELETE FROM idempotency_key WHERE (merchant_id, operation, key) IN (
      SELECT merchant_id, operation, key FROM idempotency_key
      WHERE created_at <= service_now() - lifetime_ms * interval '1 millisecond'
      ORDER BY created_at LIMIT most FOR UPDATE SKIP LOCKED)
    RETURNING 1
  ) SELECT count(*) FROM gone
$$;

REVOKE EXECUTE ON FUNCTION claim_idempotency_key, end_idempotency_claim, sweep_idempotency_keys FROM PUBLIC;
GRANT EXECUTE ON FUNCTION claim_idempotency_key, end_idempotency_claim, sweep_idempotency_keys TO payments_service;
