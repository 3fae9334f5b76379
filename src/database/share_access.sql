-- Locks each of the merchants in shared mode, in the order of their ids. With `waits`, waits for the locks.
-- Without `waits`, raises MP001 if another session is changing the access to some of them (`end_access`,
-- `asIssuer`); `detail` lists these merchants. The caller then runs their payments in a separate statement
-- that waits, so that the payments of the other merchants do not wait.
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
