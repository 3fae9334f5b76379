-- The batch that a movement is about, `batch:12`; null where it is about something else.
CREATE OR REPLACE FUNCTION batch_of(cause text) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN cause LIKE 'batch:_%' AND length(cause) <= 16
    AND translate(substr(cause, 7), '0123456789', '') = ''
    THEN CASE WHEN substr(cause, 7)::bigint <= 2147483647 THEN substr(cause, 7)::int END END
$$;

REVOKE EXECUTE ON FUNCTION batch_of FROM PUBLIC;
