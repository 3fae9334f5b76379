-- Proves that each request to an operator has the same identity (`correlation_id`) as its payment.
CREATE OR REPLACE FUNCTION audit_identities(ids bigint[], payout_ids bigint[], batch_ids int[])
RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan SET jit = off SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
  recipient_ids bigint[] := ARRAY(
    SELECT r.id FROM batch_recipient r WHERE r.batch_id = ANY (batch_ids) AND r.sent_at IS NOT NULL);
BEGIN
  RETURN QUERY
  WITH asked AS (
    SELECT 'transaction:' || t.id AS origin, t.merchant_id, t.correlation_id AS own, r.correlation_id
    FROM operator_request r JOIN transaction t ON t.id = r.transaction_id
    WHERE r.transaction_id = ANY (ids) AND t.id = ANY (ids)
    UNION ALL
    SELECT 'payout:' || p.id, p.merchant_id, p.correlation_id, r.correlation_id
    FROM operator_request r JOIN payout p ON p.id = r.payout_id
    WHERE r.payout_id = ANY (payout_ids) AND p.id = ANY (payout_ids)
    UNION ALL
    SELECT 'recipient:' || b.id, b.merchant_id, b.correlation_id, r.correlation_id
    FROM operator_request r JOIN batch_recipient b ON b.id = r.recipient_id
    WHERE r.recipient_id = ANY (recipient_ids) AND b.id = ANY (recipient_ids)
  )
  SELECT 'statuses_agree_with_requests', a.merchant_id,
    format('the operator is asked about %s under the identity %s, which is not its own', a.origin,
      a.correlation_id)
  FROM asked a WHERE a.correlation_id <> a.own;
END $$;
