-- Records a sample event and its result. It sets the time of the endpoint's last success or failure, but does
-- not change its count of failures.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION record_webhook_test(
  merchant int,
  endpoint int,
  delivery bigint,
  sent_at timestamptz,
  delivered boolean,
  status_code int,
  error text,
  duration_ms int,
  answer text,
  address text
) RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH events AS (
    UPDATE webhook_endpoint e
    SET last_success_at = CASE WHEN delivered THEN sent_at ELSE e.last_success_at END,
      last_failure_at = CASE WHEN delivered THEN e.last_failure_at ELSE sent_at END
    WHERE e.id = endpoint AND e.merchant_id = merchant
  ), kept AS (
    INSERT INTO webhook_delivery
      (id, merchant_id, endpoint_id, type, status, attempt_count, attempts_total, ended_at, created_at)
    VALUES (delivery, merchant, endpoint, 'test',
      CASE WHEN delivered THEN 'delivered' ELSE 'dead' END::webhook_delivery_status, 1, 1, service_now(),
        sent_at)
  )
  INSERT INTO webhook_attempt (delivery_id, nth, merchant_id, status_code, error, duration_ms, answer,
    address, at)
  VALUES (delivery, 1, merchant, status_code, error, duration_ms, answer, address, sent_at)
$$;
