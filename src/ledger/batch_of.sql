-- Returns the batch that an origin names (`batch:12`); null where it names something else.
CREATE OR REPLACE FUNCTION batch_of(origin text) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN origin LIKE 'batch:_%' AND length(origin) <= 16
    AND translate(substr(origin, 7), '0123456789', '') = ''
    THEN CASE WHEN substr(origin, 7)::bigint <= 2147483647 THEN substr(origin, 7)::int END END
$$;
