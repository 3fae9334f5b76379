-- Makes the deliveries of the merchants' new events, and notifies channel `events` of these merchants. The
-- process calls it after its commits: a NOTIFY inside the transactions that move money would let only one of
-- them commit at a time. @returns whether deliveries may remain to be made
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION announce_events(merchants int[], take int) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
SET enable_hashjoin = off SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  is_more boolean := make_endpoint_deliveries(ARRAY(
    SELECT w.id FROM webhook_endpoint w JOIN event_log_position h USING (merchant_id)
    WHERE w.merchant_id = ANY (merchants) AND w.slot IS NOT NULL AND h.position > w.delivered_to), take);
BEGIN
  -- A notification holds less than 8,000 bytes. For more than 500 merchants, `*` tells listeners to check
  -- all their merchants.
  PERFORM pg_notify('events', CASE WHEN cardinality(merchants) <= 500 THEN array_to_string(merchants, ',')
    ELSE '*' END);
  RETURN is_more;
END $$;
