-- Proves deposits, refunds and payouts, each from its first row, and what refunds gave back of their
-- collections: their money, events, requests and approvals agree. Of a deposit that waits for approval
-- nothing moves but its reservation, and what is paid was approved.
CREATE OR REPLACE FUNCTION audit_disbursements(ids bigint[], payout_ids bigint[])
RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan SET jit = off SET work_mem = '64MB' SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
  causes text[] := ARRAY(
    SELECT 'transaction:' || id FROM unnest(ids) AS id UNION ALL SELECT 'payout:' || id
      FROM unnest(payout_ids) AS id);
  originals bigint[] := ids || ARRAY(
    SELECT r.refund_of_id FROM transaction r WHERE r.id = ANY (ids) AND r.refund_of_id IS NOT NULL);
BEGIN
  RETURN QUERY
  SELECT 'reservations_end_once', held.merchant_id, format('%s is %s, and its money still reserved',
    held.cause, t.status)
  FROM movement held JOIN transaction t ON t.id = transaction_of(held.cause)
  WHERE held.step = 'reserve' AND t.status NOT IN ('pending', 'processing') AND held.cause = ANY (causes)
    AND t.id = ANY (ids)
    AND NOT EXISTS (
      SELECT FROM movement e WHERE e.cause = held.cause AND e.cause = ANY (causes)
        AND e.step IN ('post', 'void'));

  RETURN QUERY
  WITH subject AS (
    SELECT 'transaction:' || t.id AS cause, t.merchant_id, t.payment_method, t.amount, t.settled_amount,
      false AS scheduled, CASE t.status WHEN 'success' THEN 'completed' ELSE t.status::text END AS status,
      t.status = 'reversed' AS back
    FROM transaction t WHERE t.transaction_type = 'deposit' AND t.id = ANY (ids)
    UNION ALL
    SELECT 'payout:' || p.id, p.merchant_id, p.payment_method, p.amount, p.settled_amount,
      p.scheduled_at IS NOT NULL, p.status::text, p.reversed_at IS NOT NULL
    FROM payout p WHERE p.id = ANY (payout_ids)
  ), due AS (
    -- What must have moved. What was scheduled sets nothing aside before it begins.
    SELECT s.*, clearing_account(s.payment_method) AS account, s.status IN ('completed', 'reversed') AS paid,
      s.status IN ('failed', 'cancelled') AS given_up
    FROM subject s
  ), money AS (
    SELECT m.cause, min(m.merchant_id) AS merchant_id, max(m.merchant_id) AS merchant_id_too,
      sum(m.amount) FILTER (WHERE m.step = 'reserve') AS reserved, sum(m.amount)
        FILTER (WHERE m.step = 'post') AS posted,
      sum(m.amount) FILTER (WHERE m.step = 'release') AS released, sum(m.amount)
        FILTER (WHERE m.step = 'void') AS voided,
      sum(m.amount) FILTER (WHERE m.step = 'reverse') AS reversed,
      min(CASE m.step WHEN 'post' THEN m.credit WHEN 'reverse' THEN m.debit END) AS account,
      max(CASE m.step WHEN 'post' THEN m.credit WHEN 'reverse' THEN m.debit END) AS account_too
    FROM movement m
    WHERE (m.step IN ('reserve', 'post', 'release', 'void') OR m.step = 'reverse' AND m.credit = 'available')
      AND m.cause = ANY (causes)
    GROUP BY m.cause
  )
  SELECT 'disbursements_end_once', coalesce(d.merchant_id, m.merchant_id), CASE
    WHEN d.cause IS NULL THEN m.cause || ' set money aside, and is no payment out'
    ELSE format('%s over %s is %s%s: set aside %s, paid %s, given back %s, returned %s', d.cause, d.amount,
      d.status,
      CASE WHEN d.back THEN ', taken back' END, coalesce(m.reserved, 0), coalesce(m.posted, 0),
      coalesce(m.released, 0) + coalesce(m.voided, 0), coalesce(m.reversed, 0)) END
  FROM due d FULL JOIN money m USING (cause)
  WHERE d.cause IS NULL
    OR CASE WHEN m.cause IS NULL THEN NOT (d.scheduled AND (d.status = 'pending' OR d.given_up))
      ELSE d.scheduled AND d.status = 'pending'
        OR (m.merchant_id, m.merchant_id_too) IS DISTINCT FROM (d.merchant_id, d.merchant_id)
        OR m.reserved IS DISTINCT FROM d.amount
        OR m.posted IS DISTINCT FROM CASE WHEN d.paid THEN d.settled_amount END
        OR coalesce(m.released, 0) <> CASE WHEN d.paid THEN d.amount - d.settled_amount ELSE 0 END
        OR m.voided IS DISTINCT FROM CASE WHEN d.given_up THEN d.amount END
        OR m.reversed IS DISTINCT FROM CASE WHEN d.back THEN d.settled_amount END
        OR d.paid AND (m.account, m.account_too) IS DISTINCT FROM (d.account, d.account) END;

  RETURN QUERY
  WITH given AS (
    SELECT r.refund_of_id AS id, count(DISTINCT r.merchant_id) AS merchants,
      max(r.merchant_id) AS merchant_id, coalesce(sum(r.settled_amount) FILTER (WHERE r.status = 'success'),
        0) AS done,
      coalesce(sum(r.amount) FILTER (WHERE r.status IN ('pending', 'processing')), 0) AS open
    FROM transaction r
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

  -- A chain holds where each of its moves is lawful, none is told twice, and the hashes of what was told
  -- cancel out but for the last one.
  RETURN QUERY
  WITH lawful (type, was, status) AS MATERIALIZED (VALUES
    ('deposit_pending', '', 'pending'), ('deposit_processing', 'pending', 'processing'),
    ('deposit_cancelled', 'pending', 'cancelled'), ('deposit_processing', '', 'processing'), (
      'deposit_completed', 'processing', 'success'),
    ('deposit_failed', 'processing', 'failed'), ('deposit_reversed', 'success', 'reversed'),
    ('payout_pending', '', 'pending'), ('payout_processing', 'pending', 'processing'), ('payout_failed',
      'pending', 'failed'),
    ('payout_cancelled', 'pending', 'cancelled'), ('payout_completed', 'processing', 'completed'),
    ('payout_failed', 'processing', 'failed'), ('payout_reversed', 'completed', 'completed')
  ), told AS (
    SELECT c.cause, min(c.merchant_id) AS merchant_id, max(c.merchant_id) AS merchant_id_too,
      count(*) FILTER (WHERE c.was = '') AS begun, count(*)
        FILTER (WHERE c.type LIKE '%\_reversed') AS reversed,
      bool_and(((c.type, c.was, c.status) IN (SELECT l.type, l.was, l.status FROM lawful l)) IS TRUE)
        AND count(*) = count(DISTINCT c.type) AS lawful,
      sum(hashtext(c.status)::bigint - CASE c.was WHEN '' THEN 0 ELSE hashtext(c.was) END) AS net
    FROM (
      SELECT e.id, e.merchant_id, e.type, e.data->>'status' AS status,
        coalesce(e.data->>'previous_status', '') AS was, event_cause(e.data) AS cause
      FROM event e WHERE event_cause(e.data) = ANY (causes)
        AND (e.type LIKE 'deposit\_%' OR e.type LIKE 'payout\_%')
      OFFSET 0
    ) c GROUP BY c.cause
  ), subject AS (
    SELECT 'transaction:' || t.id AS cause, t.merchant_id, t.status::text AS status,
      t.status = 'reversed' AS back
    FROM transaction t WHERE t.transaction_type = 'deposit' AND t.id = ANY (ids)
    UNION ALL
    SELECT 'payout:' || p.id, p.merchant_id, p.status::text, p.reversed_at IS NOT NULL
    FROM payout p WHERE p.id = ANY (payout_ids)
  )
  SELECT 'events_tell_every_change', coalesce(s.merchant_id, told.merchant_id), CASE
    WHEN s.cause IS NULL THEN format('events tell of %s, which is not there', told.cause)
    ELSE format('its events do not tell how %s became %s', s.cause, s.status) END
  FROM told FULL JOIN subject s ON s.cause = told.cause
  WHERE told.cause IS NULL OR told.begun <> 1 OR NOT told.lawful OR told.reversed <> s.back::int
    OR told.net <> hashtext(s.status)
    OR (told.merchant_id, told.merchant_id_too) IS DISTINCT FROM (s.merchant_id, s.merchant_id);

  RETURN QUERY
  WITH subject AS (
    SELECT 'transaction:' || t.id AS cause, t.id AS transaction_id, NULL::bigint AS payout_id, t.merchant_id,
      t.payment_method, t.customer_phone AS phone, t.amount, CASE t.status WHEN 'success' THEN 'completed'
        ELSE t.status::text END AS status
    FROM transaction t WHERE t.transaction_type = 'deposit' AND t.id = ANY (ids)
    UNION ALL
    SELECT 'payout:' || p.id, NULL, p.id, p.merchant_id, p.payment_method, p.destination_phone, p.amount,
      p.status::text
    FROM payout p WHERE p.id = ANY (payout_ids)
  ), asked AS (
    SELECT r.*, coalesce('payout:' || r.payout_id, 'transaction:' || r.transaction_id) AS cause
    FROM operator_request r
    WHERE r.kind = 'disburse' AND r.recipient_id IS NULL AND (r.transaction_id = ANY (ids)
      OR r.payout_id = ANY (payout_ids))
  )
  SELECT 'statuses_agree_with_requests', coalesce(s.merchant_id, r.merchant_id), format('%s is %s, and %s',
    coalesce(s.cause, r.cause), coalesce(s.status, 'no payment out'),
    CASE WHEN r.id IS NULL THEN 'nothing was asked of the operator'
      ELSE format('its request over %s by %s is %s, asked about %s',
      r.amount, r.provider, r.state, coalesce(r.next_check_at::text, 'no more')) END)
  FROM subject s FULL JOIN asked r USING (cause)
  WHERE CASE
    -- What never began never left.
    WHEN r.id IS NULL THEN s.status NOT IN ('pending', 'cancelled')
      AND NOT (s.status = 'failed' AND NOT EXISTS (
      SELECT FROM movement m WHERE m.cause = s.cause AND m.step = 'reserve'))
    WHEN s.cause IS NULL THEN true
    ELSE (r.merchant_id = s.merchant_id AND r.amount = s.amount AND r.provider = s.payment_method
      AND r.phone = s.phone
      AND CASE s.status
        WHEN 'completed' THEN r.state = 'settled'
        WHEN 'reversed' THEN r.state = 'settled'
        WHEN 'failed' THEN r.state IN ('refused', 'closed') AND EXISTS (
          SELECT FROM movement m WHERE m.cause = s.cause AND m.step = 'reserve')
        -- Not decided: then somebody will ask.
        WHEN 'processing' THEN r.state IN ('sending', 'unsent', 'accepted', 'doubt')
          AND r.next_check_at IS NOT NULL
        ELSE false END) IS NOT TRUE END
  UNION ALL
  SELECT 'statuses_agree_with_requests', r.merchant_id,
    format('transaction:%s was to be paid out, and was asked for', r.transaction_id)
  FROM operator_request r JOIN transaction t ON t.id = r.transaction_id
  WHERE r.kind = 'collect' AND t.transaction_type <> 'pay' AND r.transaction_id = ANY (ids)
    AND t.id = ANY (ids);

  -- What a person approved is what is paid, and nothing begins without.
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

REVOKE EXECUTE ON FUNCTION audit_disbursements FROM PUBLIC;
