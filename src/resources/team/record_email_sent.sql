-- Records that an e-mail was sent, and deletes its content.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION record_email_sent(email uuid) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  UPDATE mail SET sent_at = now(), encrypted = NULL WHERE id = email
$$;
