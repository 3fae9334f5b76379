-- Records a question about the balance of the platform's account at an operator, and whether the operator
-- answered.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION record_balance_check(
  merchant int,
  operator provider,
  reference text,
  reason text,
  recording audit_recording
) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  INSERT INTO transaction (merchant_id, transaction_type, payment_method, customer_phone, amount, status,
    reference, request_data, evidence_source, failure_reason, settled_at, created_at)
  VALUES (merchant, 'balance_check', operator, '', 0, CASE WHEN reason IS NULL THEN 'success'
    ELSE 'failed' END::transaction_status,
    $3, jsonb_build_object('payment_method', operator), 'query', reason, service_now(), service_now());
  SELECT record_change(recording, 'operator:' || operator, NULL, jsonb_build_object('reference', $3))
$$;
