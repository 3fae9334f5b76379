-- Stores an encrypted e-mail; the trigger `enqueue_mail` enqueues the job that sends it.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION write_email(
  email uuid,
  merchant int,
  named_template text,
  encrypted_text bytea
) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  INSERT INTO mail (id, merchant_id, template, encrypted) VALUES (email, merchant, named_template,
    encrypted_text)
$$;
