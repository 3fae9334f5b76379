-- Proves deposits, refunds and payouts with all their rows, and the amounts that refunds gave back: money,
-- events, requests, approvals and references agree. A deposit that waits for approval has only its
-- reservation, and is paid only after the approval.
CREATE OR REPLACE FUNCTION audit_disbursements(ids bigint[], payout_ids bigint[])
RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan SET jit = off SET work_mem = '64MB' SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
  origins text[] := ARRAY(
    SELECT 'transaction:' || id FROM unnest(ids) AS id UNION ALL SELECT 'payout:' || id
      FROM unnest(payout_ids) AS id);
  originals bigint[] := ids || ARRAY(
    SELECT r.refund_of_id FROM transaction r WHERE r.id = ANY (ids) AND r.refund_of_id IS NOT NULL);
BEGIN
  RETURN QUERY
  SELECT 'reservations_end_once', reserved.merchant_id, format('%s is %s, and its money still reserved',
    reserved.origin, t.status)
  FROM ledger_entry reserved JOIN transaction t ON t.id = transaction_of(reserved.origin)
  WHERE reserved.step = 'reserve' AND t.status NOT IN ('pending', 'processing')
    AND reserved.origin = ANY (origins)
    AND t.id = ANY (ids)
    -- A filter by `origins` here made PostgreSQL compare each reservation with every origin of the slice.
    AND NOT EXISTS (
      SELECT FROM ledger_entry e WHERE e.origin = reserved.origin AND e.step IN ('post', 'void'));

  RETURN QUERY SELECT * FROM audit_disbursed_money(ids, payout_ids, origins);

  RETURN QUERY
  WITH given AS (
    SELECT r.refund_of_id AS id, count(DISTINCT r.merchant_id) AS merchants,
      max(r.merchant_id) AS merchant_id,
      coalesce(sum(CASE x.state WHEN 'paid' THEN r.amount ELSE r.settled_amount END)
        FILTER (WHERE r.status = 'success'), 0) AS done,
      coalesce(sum(CASE WHEN x.state = 'open' THEN r.amount - r.settled_amount ELSE r.amount END)
        FILTER (WHERE r.status IN ('pending', 'processing') OR r.status = 'success' AND x.state = 'open'),
        0) AS open
    FROM transaction r LEFT JOIN settlement_exception x ON x.merchant_id = r.merchant_id
      AND x.transaction_id = r.id
    WHERE r.refund_of_id IS NOT NULL AND r.refund_of_id = ANY (originals)
    GROUP BY r.refund_of_id
  )
  SELECT 'refunds_stay_within', g.merchant_id,
    format('transaction:%s, %s over %s, was given back %s, and %s are on their way', g.id,
      coalesce(t.status::text, 'not there'), t.settled_amount, g.done, g.open)
  FROM given g LEFT JOIN transaction t ON t.id = g.id
  WHERE (t.transaction_type = 'pay' AND t.merchant_id = g.merchant_id AND g.merchants = 1
    AND g.done + g.open <= t.settled_amount
    AND (t.status = 'reversed' OR t.status = 'success' AND g.done < t.settled_amount)) IS NOT TRUE;

  RETURN QUERY SELECT * FROM audit_disbursed_events(ids, payout_ids, origins);
  RETURN QUERY SELECT * FROM audit_disbursed_requests(ids, payout_ids);

  -- A payment that needs approval keeps the content to be approved, and begins only after the approval.
  RETURN QUERY
  SELECT 'approvals_cover_what_is_paid', p.merchant_id, format('payout:%s is %s, its approval %s', p.id,
    p.status,
    CASE WHEN p.approval = 'approved' THEN 'of something else' ELSE p.approval::text END)
  FROM payout p
  WHERE p.id = ANY (payout_ids) AND p.approval <> 'not_required'
    AND (p.status IN ('processing', 'completed', 'failed') AND p.approval <> 'approved'
      OR p.approval_digest IS DISTINCT FROM
        payout_digest(p.merchant_id, p.payment_method, p.destination_phone, p.amount, p.reference,
          p.scheduled_at));

  RETURN QUERY
  SELECT 'approvals_cover_what_is_paid', t.merchant_id, format('transaction:%s is %s, its approval %s', t.id,
    t.status, coalesce(CASE WHEN a.approval = 'approved' THEN 'of something else' ELSE a.approval::text END,
      'not there'))
  FROM transaction t LEFT JOIN deposit_approval a ON a.transaction_id = t.id
  WHERE t.id = ANY (ids) AND t.transaction_type = 'deposit'
    AND (a.transaction_id IS NOT NULL OR t.status IN ('pending', 'cancelled'))
    AND (a.approval_digest = deposit_digest(t) AND CASE t.status WHEN 'pending' THEN a.approval = 'pending'
      WHEN 'cancelled' THEN a.approval <> 'approved' ELSE a.approval = 'approved' END) IS NOT TRUE;

  RETURN QUERY
  SELECT 'references_are_unique', p.merchant_id, format('payout:%s and payout:%s have the same reference',
    other.id, p.id)
  FROM payout p JOIN payout other
    ON other.reference = p.reference AND other.merchant_id = p.merchant_id AND other.id < p.id
  WHERE p.id = ANY (payout_ids);
END $$;
