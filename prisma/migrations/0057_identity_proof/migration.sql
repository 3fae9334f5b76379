-- Written by hand. The auditor finds a request whose identity is not its row's: after a restore it would be executed twice.
CREATE FUNCTION audit_identities(ids bigint[], payout_ids bigint[], batch_ids int[])
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
    SELECT 'transaction:' || t.id AS cause, t.merchant_id, t.correlation_id AS own, r.correlation_id
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
    format('the operator is asked about %s under the identity %s, which is not its own', a.cause, a.correlation_id)
  FROM asked a WHERE a.correlation_id <> a.own;
END $$;

-- As before, and the identities.
CREATE OR REPLACE FUNCTION audit_subjects(transaction_ids bigint[], payout_ids bigint[], batch_ids int[], link_ids int[])
RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  IF transaction_ids <> '{}' THEN RETURN QUERY SELECT * FROM audit_collections(transaction_ids); END IF;
  IF transaction_ids <> '{}' OR payout_ids <> '{}' THEN
    RETURN QUERY SELECT * FROM audit_disbursements(transaction_ids, payout_ids);
  END IF;
  IF batch_ids <> '{}' THEN RETURN QUERY SELECT * FROM audit_batches(batch_ids); END IF;
  IF transaction_ids <> '{}' OR link_ids <> '{}' THEN
    RETURN QUERY SELECT * FROM audit_links(link_ids, transaction_ids);
  END IF;
  RETURN QUERY SELECT * FROM audit_identities(transaction_ids, payout_ids, batch_ids);
END $$;

REVOKE EXECUTE ON FUNCTION audit_identities FROM PUBLIC;
