-- Reads an address or range; an IPv4 address in IPv6 notation becomes IPv4. Returns null where the text is
-- neither, as `parseNetwork` of `ip-whitelist.ts` does: PostgreSQL itself also reads `010.0.0.1` and `10/8`.
CREATE OR REPLACE FUNCTION network_of(entry text) RETURNS inet LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
  network inet;
BEGIN
  IF entry !~ ':|^\d+\.\d+\.\d+\.\d+(/|$)' OR entry ~ '(^|[.:])0\d+\.|\.0\d+(/|$)|/0\d' THEN
    RETURN NULL;
  END IF;
  network := entry::inet;
  IF family(network) = 6 AND host(network)::inet <<= '::ffff:0.0.0.0/96' THEN
    IF masklen(network) < 96 THEN RETURN NULL; END IF;
    RETURN set_masklen(('0.0.0.0'::inet + (network - '::ffff:0.0.0.0'::inet)), masklen(network) - 96);
  END IF;
  RETURN network;
EXCEPTION WHEN invalid_text_representation THEN RETURN NULL;
END $$;
