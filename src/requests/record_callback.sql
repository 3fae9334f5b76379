-- Stores a callback once and makes its request due; only a query decides what the callback means. The
-- callback names its request by the request's id or by its correlation id; the request must be one of that
-- operator. `is_new`: this call stored the callback. `request_id`: null where the callback names no request
-- of this service.
CREATE OR REPLACE FUNCTION record_callback(
  of_provider provider, of_dedupe_key text, of_body text, named_id bigint, named_correlation uuid, says text
) RETURNS TABLE (is_new boolean, request_id bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  WITH named AS MATERIALIZED (
    -- Two lookups use an index in any plan; with OR, a generic plan reads the whole table.
    SELECT r.id, r.merchant_id FROM operator_request r
    WHERE r.id = named_id AND r.provider = of_provider
      AND r.correlation_id = coalesce(named_correlation, r.correlation_id)
    UNION ALL
    SELECT r.id, r.merchant_id FROM operator_request r
    WHERE named_id IS NULL AND r.correlation_id = named_correlation AND r.provider = of_provider
  ), kept AS (
    INSERT INTO operator_callback AS c (merchant_id, request_id, provider, dedupe_key, body)
    SELECT (SELECT n.merchant_id FROM named n), (SELECT n.id FROM named n), of_provider, of_dedupe_key,
      of_body
    ON CONFLICT (provider, dedupe_key) DO NOTHING RETURNING c.request_id
  ), due AS (
    UPDATE operator_request r
    SET next_check_at = date_trunc('milliseconds', service_now()),
      handle = r.handle || jsonb_build_object('claimed', says, 'alertAt', service_now())
    -- A settled request becomes due only where the callback claims another outcome.
    FROM kept WHERE r.id = kept.request_id AND (r.state <> 'settled' OR says <> 'settled')
  )
  SELECT EXISTS (SELECT FROM kept), (SELECT n.id FROM named n);
END $$;

REVOKE EXECUTE ON FUNCTION record_callback FROM PUBLIC;
GRANT EXECUTE ON FUNCTION record_callback TO payments_service;
