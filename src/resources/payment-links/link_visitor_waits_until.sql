-- Returns the moment from which an address may begin to pay by a link; null where it may now. An address
-- holds at most a tenth of the slots at once, but no fewer than 3 and no more than 100. A withdrawn attempt
-- counts among them for its ten minutes: by withdrawing one prompt after the other, an address could else
-- prompt any number of strangers. After as many unpaid attempts that held a slot for a minute or more, the
-- address begins only while half of the slots left are free, so that addresses that do not pay leave the
-- other half to addresses that are new at the link. The attempts of the telephone itself do not count here:
-- it has bounds of its own, and its owner may try again.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION link_visitor_waits_until(
  link payment_link,
  visitor bytea,
  phone text,
  at timestamptz
) RETURNS timestamptz LANGUAGE plpgsql STABLE SET search_path = public, pg_temp AS $$
DECLARE
  most int := least(100, greatest(3, coalesce(link.usage_limit, 1000) / 10));
  half int := (link.usage_limit - link.usage_count) / 2;
  free_at timestamptz := (
    SELECT p.created_at + link_slot_time() FROM link_slot p JOIN transaction t ON t.id = p.transaction_id
    WHERE p.address = visitor AND p.created_at > at - link_slot_time()
      AND (t.status IN ('pending', 'processing')
        OR t.failure_reason = 'CANCELLED' AND t.customer_phone <> phone)
    ORDER BY p.created_at DESC OFFSET most - 1 LIMIT 1);
  forgotten_at timestamptz;
BEGIN
  IF free_at IS NOT NULL OR half IS NULL THEN RETURN free_at; END IF;
  forgotten_at := (
    SELECT p.created_at + link_memory_time() FROM link_slot p JOIN transaction t ON t.id = p.transaction_id
    WHERE p.address = visitor AND p.created_at > at - link_memory_time() AND t.customer_phone <> phone
      AND (t.failure_reason IS DISTINCT FROM 'CANCELLED'
        OR t.settled_at >= p.created_at + interval '1 minute')
    ORDER BY p.created_at DESC OFFSET most - 1 LIMIT 1);
  RETURN CASE WHEN forgotten_at IS NULL THEN NULL WHEN half = 0 THEN forgotten_at
    ELSE link_slots_free_at(link.id, half, at) END;
END $$;
