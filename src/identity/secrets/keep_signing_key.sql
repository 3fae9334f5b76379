-- Stores a new signing key, unless another process stored one of this name first.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION keep_signing_key(name text, public_half jsonb, encrypted bytea) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  INSERT INTO signing_key (kid, public_key, encrypted_private) VALUES (name, public_half, encrypted)
  ON CONFLICT (kid) DO NOTHING
$$;
