-- Takes the shared lock of each merchant in a shared statement, in the order of their ids. Unless it `waits`:
-- where another session changes the access to one of them (`end_access`, `asIssuer`), the statement fails at
-- once, with nothing done, and `detail` names these merchants. The payments of these merchants then wait in a
-- separate statement; those of other merchants do not wait.
CREATE OR REPLACE FUNCTION share_access(merchants int[], waits boolean) RETURNS void LANGUAGE plpgsql
  SET search_path = public, pg_temp AS $$
DECLARE
  locked int[];
BEGIN
  IF waits THEN
    PERFORM pg_advisory_xact_lock_shared(72707373, id)
    FROM (SELECT DISTINCT id FROM unnest(merchants) AS id ORDER BY id) AS merchant;
    RETURN;
  END IF;
  locked := ARRAY(
    SELECT id FROM (SELECT DISTINCT id FROM unnest(merchants) AS id ORDER BY id) AS merchant
    WHERE NOT pg_try_advisory_xact_lock_shared(72707373, id));
  IF locked <> '{}' THEN
    RAISE EXCEPTION 'the access to merchants is being changed' USING ERRCODE = 'MP001',
      DETAIL = array_to_string(locked, ',');
  END IF;
END $$;

REVOKE EXECUTE ON FUNCTION share_access FROM PUBLIC;
