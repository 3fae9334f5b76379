-- Removes an endpoint of a merchant. Its deliveries stay on record, but pending ones are no longer sent.
-- @returns null where the merchant has no such endpoint
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION remove_webhook(merchant int, endpoint int) RETURNS boolean
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  UPDATE webhook_endpoint
  SET slot = NULL, is_active = false, due_at = NULL, removed_at = service_now(), updated_at = service_now()
  WHERE id = endpoint AND merchant_id = merchant AND removed_at IS NULL
  RETURNING true
$$;
