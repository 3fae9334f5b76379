-- Whether the whitelist allows the address; an empty one allows every address. An address that is not known
-- (null) is in no range.
CREATE OR REPLACE FUNCTION whitelist_allows(whitelist text[], address text) RETURNS boolean
  LANGUAGE sql IMMUTABLE AS $$
  SELECT cardinality(whitelist) = 0
    OR EXISTS (SELECT FROM unnest(whitelist) AS entry WHERE network_of(entry) >>= network_of(address))
$$;
