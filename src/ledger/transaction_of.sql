-- Returns the transaction that an origin names (`transaction:12`); null where it names something else.
CREATE OR REPLACE FUNCTION transaction_of(origin text) RETURNS bigint
  LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN origin LIKE 'transaction:_%' AND length(origin) <= 30
    AND translate(substr(origin, 13), '0123456789', '') = ''
    THEN substr(origin, 13)::bigint END
$$;
