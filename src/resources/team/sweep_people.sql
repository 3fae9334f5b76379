-- Deletes sessions a month after their end, e-mails after three months, waits after failed sign-ins a day
-- after their end, and client addresses from which an account did not sign in for 90 days: at most `most`
-- rows of each. @returns how many rows
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION sweep_people(most int) RETURNS int LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
DECLARE
  sessions int;
  mails int;
  waits int;
  addresses int;
BEGIN
  DELETE FROM session WHERE id IN (
    SELECT id FROM session WHERE least(revoked_at, expires_at) < now() - interval '30 days' LIMIT most);
  GET DIAGNOSTICS sessions = ROW_COUNT;
  DELETE FROM mail WHERE id IN (SELECT id FROM mail WHERE created_at < now() - interval '90 days' LIMIT most);
  GET DIAGNOSTICS mails = ROW_COUNT;
  -- Check the condition again under the row lock: a failed sign-in may have renewed the row in the meantime.
  DELETE FROM sign_in_wait WHERE until < now() - interval '1 day' AND name IN (
    SELECT name FROM sign_in_wait WHERE until < now() - interval '1 day' LIMIT most);
  GET DIAGNOSTICS waits = ROW_COUNT;
  DELETE FROM sign_in_address WHERE (account, address) IN (
    SELECT account, address FROM sign_in_address WHERE seen_at < now() - interval '90 days' LIMIT most);
  GET DIAGNOSTICS addresses = ROW_COUNT;
  RETURN sessions + mails + waits + addresses;
END $$;
