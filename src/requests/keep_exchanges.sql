-- Stores the HTTP exchanges that requests to operators caused.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION keep_exchanges(
  merchant_ids int[],
  request_ids bigint[],
  operations text[],
  methods text[],
  paths text[],
  statuses smallint[],
  request_bodies text[],
  response_bodies text[],
  errors text[],
  duration_ms int[],
  ats timestamptz[]
) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  INSERT INTO operator_exchange (merchant_id, request_id, operation, method, path, status, request_body,
    response_body, error, duration_ms, at)
  SELECT * FROM unnest(merchant_ids, request_ids, operations, methods, paths, statuses, request_bodies,
    response_bodies, errors, duration_ms, ats)
$$;
