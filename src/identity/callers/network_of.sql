-- Reads an address or range; an IPv4 address in IPv6 notation becomes IPv4. Returns null where the text is
-- neither, as `ip-whitelist.ts` does.
CREATE OR REPLACE FUNCTION network_of(entry text) RETURNS inet LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
  network inet;
BEGIN
  network := entry::inet;
  IF family(network) = 6 AND network <<= '::ffff:0.0.0.0/96' THEN
    RETURN set_masklen(('0.0.0.0'::inet + (network - '::ffff:0.0.0.0'::inet)), masklen(network) - 96);
  END IF;
  RETURN network;
EXCEPTION WHEN invalid_text_representation THEN RETURN NULL;
END $$;
