-- Returns the payout that an origin names (`payout:7`); null where it names something else.
CREATE OR REPLACE FUNCTION payout_of(origin text) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN origin LIKE 'payout:_%' AND length(origin) <= 25
    AND translate(substr(origin, 8), '0123456789', '') = ''
    THEN substr(origin, 8)::bigint END
$$;
