-- Gives an endpoint a new secret, once per operation. For `overlap_ms` the replaced secret stays valid too.
-- If an older secret is still valid, that one stays valid instead, and the replaced one ends at once. An
-- `overlap_ms` of 0 ends both.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION rotate_webhook_secret(
  merchant int,
  endpoint int,
  encrypted bytea,
  operation_id text,
  overlap_ms bigint
)
RETURNS TABLE (secret_encrypted bytea) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public,
  pg_temp AS $$
#variable_conflict use_column
DECLARE
  at timestamptz := service_now();
BEGIN
  UPDATE webhook_endpoint e
  SET secret_encrypted = encrypted, rotated_for = operation_id, updated_at = at,
    previous_secret_encrypted = CASE
      WHEN overlap_ms = 0 THEN NULL
      WHEN e.previous_secret_until > at THEN e.previous_secret_encrypted
      ELSE e.secret_encrypted END,
    previous_secret_until = CASE WHEN overlap_ms > 0 THEN at + overlap_ms * interval '1 millisecond' END
  WHERE e.id = endpoint AND e.merchant_id = merchant AND e.removed_at IS NULL
    AND (operation_id IS NULL OR e.rotated_for IS DISTINCT FROM operation_id);
  RETURN QUERY SELECT e.secret_encrypted FROM webhook_endpoint e
    WHERE e.id = endpoint AND e.merchant_id = merchant AND e.removed_at IS NULL;
END $$;
