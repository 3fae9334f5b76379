-- Takes the right to run the request of a key. `outcome` is `begun` (the key is new), `resumed` (an earlier
-- run died or ended without an answer: the caller continues the same operation), `running` (another caller
-- runs it), `answered`, or `reused` (the key was used for another request). An expired key counts as new.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION claim_idempotency_key(
  merchant int,
  named_operation text,
  given_key text,
  given_digest bytea,
  new_operation_id bytea,
  lease_ms int,
  lifetime_ms bigint
) RETURNS TABLE (outcome text, operation_id bytea, claim int, since timestamptz, answer bytea)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  kept idempotency_key;
  lease timestamptz := clock_timestamp() + lease_ms * interval '1 millisecond';
BEGIN
  FOR round IN 1..10 LOOP
    INSERT INTO idempotency_key AS k (merchant_id, operation, key, digest, operation_id, locked_until,
      created_at)
    VALUES (merchant, named_operation, given_key, given_digest, new_operation_id, lease, service_now())
    ON CONFLICT ON CONSTRAINT idempotency_key_pkey DO UPDATE
    SET digest = excluded.digest, operation_id = excluded.operation_id, claim = k.claim + 1,
      locked_until = excluded.locked_until, answer = NULL, created_at = excluded.created_at
    WHERE k.created_at <= service_now() - lifetime_ms * interval '1 millisecond'
    RETURNING k.* INTO kept;
    IF FOUND THEN
      RETURN QUERY SELECT 'begun', kept.operation_id, kept.claim, kept.created_at, NULL::bytea;
      RETURN;
    END IF;
    SELECT k.* INTO kept FROM idempotency_key k
    WHERE k.merchant_id = merchant AND k.operation = named_operation AND k.key = given_key FOR UPDATE;
    -- Another caller gave the key back after the INSERT: try again, because the key is free now.
    CONTINUE WHEN NOT FOUND;
    IF kept.digest = given_digest AND kept.answer IS NULL
      AND (kept.locked_until > clock_timestamp()) IS NOT TRUE THEN
      UPDATE idempotency_key k SET claim = k.claim + 1, locked_until = lease
      WHERE k.merchant_id = merchant AND k.operation = named_operation AND k.key = given_key
      RETURNING k.* INTO kept;
      RETURN QUERY SELECT 'resumed', kept.operation_id, kept.claim, kept.created_at, NULL::bytea;
      RETURN;
    END IF;
    RETURN QUERY SELECT CASE WHEN kept.digest <> given_digest THEN 'reused' WHEN kept.answer IS NULL
      THEN 'running'
      ELSE 'answered' END, kept.operation_id, kept.claim, kept.created_at,
      CASE WHEN kept.digest = given_digest THEN kept.answer END;
    RETURN;
  END LOOP;
  RETURN QUERY SELECT 'running', NULL::bytea, NULL::int, NULL::timestamptz, NULL::bytea;
END $$;
