-- The recipient that a movement is about, `recipient:12`; null where it is about something else.
CREATE OR REPLACE FUNCTION recipient_of(cause text) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN cause LIKE 'recipient:_%' AND length(cause) <= 28
    AND translate(substr(cause, 11), '0123456789', '') = ''
    THEN substr(cause, 11)::bigint END
$$;

REVOKE EXECUTE ON FUNCTION recipient_of FROM PUBLIC;
