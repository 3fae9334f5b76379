-- Opens a merchant account. @returns its id
CREATE OR REPLACE FUNCTION create_merchant(name text) RETURNS int LANGUAGE sql
  SET search_path = public, pg_temp AS $$
  INSERT INTO merchant (name) VALUES (name) RETURNING id
$$;

REVOKE EXECUTE ON FUNCTION create_merchant FROM PUBLIC;
GRANT EXECUTE ON FUNCTION create_merchant TO payments_service;
