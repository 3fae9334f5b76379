-- Notes that a letter was sent, and forgets what it said.
CREATE OR REPLACE FUNCTION note_letter_sent(letter uuid) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  UPDATE mail SET sent_at = now(), sealed = NULL WHERE id = letter
$$;

REVOKE EXECUTE ON FUNCTION note_letter_sent FROM PUBLIC;
GRANT EXECUTE ON FUNCTION note_letter_sent TO payments_service;
