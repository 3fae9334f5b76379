-- The time for which an open attempt holds a slot of its link. The payer may also pay later: such a payment
-- counts too, even if it exceeds the limit.
-- Granted to payments_service and payments_merchant.
CREATE OR REPLACE FUNCTION link_slot_time() RETURNS interval
  LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT interval '10 minutes' $$;
