-- Letters leave one after another: a mail server that hangs keeps no other job from its place.
CREATE OR REPLACE FUNCTION enqueue_mail() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  PERFORM graphile_worker.add_job(
    'mail.send', json_build_object('mailId', NEW.id), queue_name => 'mail', max_attempts => 15);
  RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION request_password_reset(email text, merchant int) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  PERFORM graphile_worker.add_job('members.reset-password', json_build_object('email', email, 'merchantId', merchant),
    queue_name => 'mail', max_attempts => 5);
END $$;
