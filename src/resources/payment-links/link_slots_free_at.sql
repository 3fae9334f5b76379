-- Returns the moment at which a slot of a link becomes free at the latest, if open attempts hold all slots;
-- null where a slot is free. `slots`: the usage limit less the payments that were made.
-- Granted to payments_service and payments_merchant.
CREATE OR REPLACE FUNCTION link_slots_free_at(link int, slots int, at timestamptz) RETURNS timestamptz
  LANGUAGE sql STABLE
SET search_path = public, pg_temp AS $$
  SELECT t.created_at + link_slot_time() FROM transaction t
  WHERE t.payment_link_id = $1 AND t.status IN ('pending', 'processing')
    AND t.created_at > $3 - link_slot_time() AND $2 > 0
  ORDER BY t.created_at DESC OFFSET greatest($2, 1) - 1 LIMIT 1
$$;
