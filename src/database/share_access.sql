-- Takes the lock of each merchant whose payments share a statement, as the statement itself does, but waits
-- for none: where another session changes the access to one of them (`end_access`, `asMaker`), the statement
-- fails at once, with nothing done, and `detail` names these merchants. Their payments then wait in a
-- statement of their own, and no other merchant's do.
CREATE OR REPLACE FUNCTION share_access(merchants int[]) RETURNS int[] LANGUAGE plpgsql
  SET search_path = public, pg_temp AS $$
DECLARE
  held int[] := ARRAY(
    SELECT id FROM (SELECT DISTINCT id FROM unnest(merchants) AS id ORDER BY id) AS merchant
    WHERE NOT pg_try_advisory_xact_lock_shared(72707373, id));
BEGIN
  IF held <> '{}' THEN
    RAISE EXCEPTION 'the access to merchants is being changed' USING ERRCODE = 'MP001',
      DETAIL = array_to_string(held, ',');
  END IF;
  RETURN merchants;
END $$;

REVOKE EXECUTE ON FUNCTION share_access FROM PUBLIC;
GRANT EXECUTE ON FUNCTION share_access TO payments_service;
