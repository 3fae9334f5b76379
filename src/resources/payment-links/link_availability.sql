-- Returns `open` if a payer may begin to pay by a link, else the reason. An open attempt holds a slot for the
-- time of `link_slot_time`.
CREATE OR REPLACE FUNCTION link_availability(payment_link, at timestamptz DEFAULT service_now()) RETURNS text
  LANGUAGE sql STABLE
SET search_path = public, pg_temp AS $$
  SELECT CASE WHEN NOT $1.is_active THEN 'inactive'
    WHEN $1.expires_at <= $2 THEN 'expired'
    WHEN $1.usage_count >= $1.usage_limit THEN 'exhausted'
    WHEN $1.usage_count + $1.open_count >= $1.usage_limit
      AND link_slots_free_at($1.id, $1.usage_limit - $1.usage_count, $2) IS NOT NULL THEN 'exhausted'
    ELSE 'open' END
$$;
