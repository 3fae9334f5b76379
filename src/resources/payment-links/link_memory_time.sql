-- The time for which a link remembers the unpaid attempts of an address. Choice: long enough that a few
-- addresses cannot hold the slots of a link by turns, short enough for payers who share an address with them.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION link_memory_time() RETURNS interval
  LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT interval '6 hours' $$;
