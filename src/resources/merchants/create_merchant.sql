-- Opens a merchant account. @returns its id
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION create_merchant(name text) RETURNS int LANGUAGE sql
  SET search_path = public, pg_temp AS $$
  INSERT INTO merchant (name) VALUES (name) RETURNING id
$$;
