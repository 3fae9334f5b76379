-- The transaction that a movement is about; null where it is about something else.
CREATE OR REPLACE FUNCTION transaction_of(cause text) RETURNS bigint
  LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN cause LIKE 'transaction:_%' AND length(cause) <= 30
    AND translate(substr(cause, 13), '0123456789', '') = ''
    THEN substr(cause, 13)::bigint END
$$;

REVOKE EXECUTE ON FUNCTION transaction_of FROM PUBLIC;
