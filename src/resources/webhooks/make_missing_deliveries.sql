-- Makes the deliveries that are missing at any endpoint, because the process that wrote the events died
-- before it announced them. @returns whether deliveries may remain to be made
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION make_missing_deliveries(take int) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
  RETURN make_endpoint_deliveries(ARRAY(
    SELECT w.id FROM webhook_endpoint w JOIN event_log_position h USING (merchant_id)
    WHERE w.slot IS NOT NULL AND h.position > w.delivered_to LIMIT take), take);
END $$;
