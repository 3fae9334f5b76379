-- Enqueues the request for a new password. The job looks up whether there is such a member, so that neither
-- the answer nor its time shows that to the caller.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION request_password_reset(email text, merchant int) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  PERFORM graphile_worker.add_job('members.reset-password',
    json_build_object('email', email, 'merchantId', merchant), queue_name => 'mail', max_attempts => 5);
END $$;
