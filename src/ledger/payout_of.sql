-- The payout that a movement is about; null where it is about something else.
CREATE OR REPLACE FUNCTION payout_of(cause text) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN cause LIKE 'payout:_%' AND length(cause) <= 25
    AND translate(substr(cause, 8), '0123456789', '') = ''
    THEN substr(cause, 8)::bigint END
$$;

REVOKE EXECUTE ON FUNCTION payout_of FROM PUBLIC;
