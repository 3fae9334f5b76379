-- Deletes all failures that were counted under these names.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION forgive_failures(names text[]) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  DELETE FROM sign_in_wait WHERE name = ANY (names)
$$;
