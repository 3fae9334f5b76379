-- Returns the recipient that an origin names (`recipient:12`); null where it names something else.
CREATE OR REPLACE FUNCTION recipient_of(origin text) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN origin LIKE 'recipient:_%' AND length(origin) <= 28
    AND translate(substr(origin, 11), '0123456789', '') = ''
    THEN substr(origin, 11)::bigint END
$$;
