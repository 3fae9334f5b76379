-- Deletes at most `most` expired keys, and skips keys that another transaction has locked. @returns how many
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION sweep_idempotency_keys(lifetime_ms bigint, most int) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH gone AS (
    DELETE FROM idempotency_key WHERE (merchant_id, operation, key) IN (
      SELECT merchant_id, operation, key FROM idempotency_key
      WHERE created_at <= service_now() - lifetime_ms * interval '1 millisecond'
      ORDER BY created_at LIMIT most FOR UPDATE SKIP LOCKED)
    RETURNING 1
  ) SELECT count(*) FROM gone
$$;
