-- How long an open attempt holds a place of its link. It may be paid later as well: late money counts, also
-- beyond the limit.
CREATE OR REPLACE FUNCTION link_slot_time() RETURNS interval
  LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT interval '10 minutes' $$;

REVOKE EXECUTE ON FUNCTION link_slot_time FROM PUBLIC;
GRANT EXECUTE ON FUNCTION link_slot_time TO payments_merchant;
GRANT EXECUTE ON FUNCTION link_slot_time TO payments_service;
