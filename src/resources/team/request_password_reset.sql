-- Somebody wants a new password. Whether there is such a member is looked up by the job: who asks hears
-- nothing of it, also not by the time that the answer takes.
CREATE OR REPLACE FUNCTION request_password_reset(email text, merchant int) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  PERFORM graphile_worker.add_job('members.reset-password',
    json_build_object('email', email, 'merchantId', merchant), queue_name => 'mail', max_attempts => 5);
END $$;

REVOKE EXECUTE ON FUNCTION request_password_reset FROM PUBLIC;
GRANT EXECUTE ON FUNCTION request_password_reset TO payments_service;
