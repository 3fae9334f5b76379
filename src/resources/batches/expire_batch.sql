-- Cancels one batch that was not approved in time: only one, because it may have very many recipients.
-- @returns true where there was one
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION expire_batch() RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
DECLARE
  late batch;
BEGIN
  SELECT b.* INTO late FROM batch b WHERE b.status = 'pending_approval'
    AND b.approval_expires_at <= service_now()
  ORDER BY b.approval_expires_at LIMIT 1 FOR UPDATE SKIP LOCKED;
  IF FOUND THEN PERFORM cancel_batch(late.merchant_id, late.id, 'expired'); END IF;
  RETURN late.id IS NOT NULL;
END $$;
