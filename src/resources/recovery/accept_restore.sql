-- Accepts a restore: money may leave again, unless payments out are halted for another reason too. @returns
-- false where no restore waits to be accepted, or the epoch has changed meanwhile
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION accept_restore(known int, what jsonb, why text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  UPDATE installation i SET restored_at = NULL WHERE i.epoch = known AND i.restored_at IS NOT NULL;
  IF NOT FOUND THEN RETURN false; END IF;
  UPDATE database_epoch e SET accepted_at = now(), outcome = CASE WHEN e.epoch = known THEN what END
    WHERE e.accepted_at IS NULL;
  UPDATE payments_out_halt h SET lifted_reason = why, lifted_at = now() WHERE h.lifted_at IS NULL
    AND h.restored_epoch IS NOT NULL;
  RETURN true;
END $$;
