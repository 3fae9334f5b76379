-- Keeps a sealed letter, which `enqueue_mail` has sent.
CREATE OR REPLACE FUNCTION write_letter(
  letter uuid, merchant int, named_template text, sealed_text bytea
) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  INSERT INTO mail (id, merchant_id, template, sealed) VALUES (letter, merchant, named_template, sealed_text)
$$;

REVOKE EXECUTE ON FUNCTION write_letter FROM PUBLIC;
GRANT EXECUTE ON FUNCTION write_letter TO payments_service;
