-- Below: written by hand. What the schema language cannot say. The proof of money out.

-- Money is set aside for a deposit or a payout, by its own verbs, and ends with it: never for a name alone.
DROP FUNCTION reserve_many(int[], text[], bigint[]);
DROP FUNCTION end_reservation_many(text[], ledger_step[], provider[]);

-- What the audit proved until here keeps its body under the name of what it is about.
ALTER FUNCTION audit_ledger(boolean) RENAME TO audit_books;

-- Holds deposits, refunds and payouts against their money, their events, their requests and each other, since the auditor's
-- point or whole, as `audit_books` does the rest.
CREATE FUNCTION audit_disbursements(whole boolean) RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan SET jit = off SET work_mem = '64MB' SET enable_seqscan = on AS $$
#variable_conflict use_column
DECLARE
  since audit_point := (SELECT p FROM audit_point p WHERE NOT whole);
  since_movement bigint := coalesce(since.movement_id, 0);
  since_event bigint := coalesce(since.event_id, 0);
  before_event bigint := coalesce(since.event_id_before, 0);
  all_of_it boolean := since IS NULL;
  touched bigint[];
  touched_payouts bigint[];
  causes text[];
BEGIN
  IF NOT all_of_it THEN
    touched := ARRAY(
      SELECT (e.data->>'transaction_id')::bigint FROM event e WHERE e.id > since_event AND e.data ? 'transaction_id'
      UNION SELECT transaction_of(m.cause) FROM movement m WHERE m.id > since_movement AND m.cause LIKE 'transaction:%');
    -- With a refund what it gives back.
    touched := touched || ARRAY(
      SELECT r.refund_of_id FROM transaction r WHERE r.id = ANY (touched) AND r.refund_of_id IS NOT NULL);
    touched_payouts := ARRAY(
      SELECT (e.data->>'payout_id')::bigint FROM event e WHERE e.id > since_event AND e.data ? 'payout_id'
      UNION SELECT payout_of(m.cause) FROM movement m WHERE m.id > since_movement AND m.cause LIKE 'payout:%');
    causes := ARRAY(
      SELECT 'transaction:' || id FROM unnest(touched) AS id UNION ALL SELECT 'payout:' || id FROM unnest(touched_payouts) AS id);
  END IF;

  -- Of a merchant that owes nothing is available.
  RETURN QUERY
  SELECT 'debts_are_paid_first', b.merchant_id, format('available %s, and %s are owed', b.available, b.receivable)
  FROM merchant_balance b WHERE b.receivable > 0 AND b.available > 0;

  RETURN QUERY
  WITH subject AS (
    SELECT 'transaction:' || t.id AS cause, t.merchant_id, t.payment_method, t.amount, t.settled_amount,
      false AS scheduled, CASE t.status WHEN 'success' THEN 'completed' ELSE t.status::text END AS status, t.status = 'reversed' AS back
    FROM transaction t WHERE t.transaction_type = 'deposit' AND (all_of_it OR t.id = ANY (touched))
    UNION ALL
    SELECT 'payout:' || p.id, p.merchant_id, p.payment_method, p.amount, p.settled_amount, p.scheduled_at IS NOT NULL,
      p.status::text, p.reversed_at IS NOT NULL
    FROM payout p WHERE all_of_it OR p.id = ANY (touched_payouts)
  ), due AS (
    -- What must have moved. What was scheduled sets nothing aside before it begins.
    SELECT s.*, clearing_account(s.payment_method) AS account, s.status IN ('completed', 'reversed') AS paid,
      s.status IN ('failed', 'cancelled') AS given_up
    FROM subject s
  ), money AS (
    SELECT m.cause, min(m.merchant_id) AS merchant_id, max(m.merchant_id) AS merchant_id_too,
      sum(m.amount) FILTER (WHERE m.step = 'reserve') AS reserved, sum(m.amount) FILTER (WHERE m.step = 'post') AS posted,
      sum(m.amount) FILTER (WHERE m.step = 'release') AS released, sum(m.amount) FILTER (WHERE m.step = 'void') AS voided,
      sum(m.amount) FILTER (WHERE m.step = 'reverse') AS reversed,
      min(CASE m.step WHEN 'post' THEN m.credit WHEN 'reverse' THEN m.debit END) AS account,
      max(CASE m.step WHEN 'post' THEN m.credit WHEN 'reverse' THEN m.debit END) AS account_too
    FROM movement m
    WHERE (m.step IN ('reserve', 'post', 'release', 'void') OR m.step = 'reverse' AND m.credit = 'available')
      AND (all_of_it OR m.cause = ANY (causes))
    GROUP BY m.cause
  )
  SELECT 'disbursements_end_once', coalesce(d.merchant_id, m.merchant_id), CASE
    WHEN d.cause IS NULL THEN m.cause || ' set money aside, and is no payment out'
    ELSE format('%s over %s is %s%s: set aside %s, paid %s, given back %s, returned %s', d.cause, d.amount, d.status,
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
    SELECT r.refund_of_id AS id, count(DISTINCT r.merchant_id) AS merchants, max(r.merchant_id) AS merchant_id,
      coalesce(sum(r.settled_amount) FILTER (WHERE r.status = 'success'), 0) AS done,
      coalesce(sum(r.amount) FILTER (WHERE r.status = 'processing'), 0) AS open
    FROM transaction r
    WHERE r.refund_of_id IS NOT NULL AND (all_of_it OR r.refund_of_id = ANY (touched))
    GROUP BY r.refund_of_id
  )
  SELECT 'refunds_stay_within', g.merchant_id, format('transaction:%s, %s over %s, was given back %s, and %s are on their way',
    g.id, coalesce(t.status::text, 'not there'), t.settled_amount, g.done, g.open)
  FROM given g LEFT JOIN transaction t ON t.id = g.id
  WHERE (t.transaction_type = 'pay' AND t.merchant_id = g.merchant_id AND g.merchants = 1
    AND g.done + g.open <= t.settled_amount
    AND (t.status = 'reversed' OR t.status = 'success' AND g.done < t.settled_amount)) IS NOT TRUE;

  -- A chain holds where each of its moves is lawful, none is told twice, and the hashes of what was told cancel out but for
  -- the last one.
  RETURN QUERY
  WITH lawful (type, was, status) AS MATERIALIZED (VALUES
    ('deposit_processing', '', 'processing'), ('deposit_completed', 'processing', 'success'),
    ('deposit_failed', 'processing', 'failed'), ('deposit_reversed', 'success', 'reversed'),
    ('payout_pending', '', 'pending'), ('payout_processing', 'pending', 'processing'), ('payout_failed', 'pending', 'failed'),
    ('payout_cancelled', 'pending', 'cancelled'), ('payout_completed', 'processing', 'completed'),
    ('payout_failed', 'processing', 'failed'), ('payout_reversed', 'completed', 'completed')
  ), told AS (
    SELECT c.cause, min(c.merchant_id) AS merchant_id, max(c.merchant_id) AS merchant_id_too, min(c.id) AS first_id,
      count(*) FILTER (WHERE c.was = '') AS begun, count(*) FILTER (WHERE c.type LIKE '%\_reversed') AS reversed,
      bool_and(((c.type, c.was, c.status) IN (SELECT l.type, l.was, l.status FROM lawful l)) IS TRUE)
        AND count(*) = count(DISTINCT c.type) AS lawful,
      sum(hashtext(c.status)::bigint - CASE c.was WHEN '' THEN 0 ELSE hashtext(c.was) END) AS net
    FROM (
      SELECT e.id, e.merchant_id, e.type, e.data->>'status' AS status, coalesce(e.data->>'previous_status', '') AS was,
        CASE WHEN e.type LIKE 'payout%' THEN 'payout:' || (e.data->>'payout_id')
          ELSE 'transaction:' || (e.data->>'transaction_id') END AS cause
      FROM event e WHERE e.id > since_event AND (e.type LIKE 'deposit\_%' OR e.type LIKE 'payout\_%')
      OFFSET 0
    ) c GROUP BY c.cause
  ), subject AS (
    SELECT 'transaction:' || t.id AS cause, t.merchant_id, t.status::text AS status, t.status = 'reversed' AS back
    FROM transaction t WHERE t.transaction_type = 'deposit' AND (all_of_it OR t.id = ANY (touched))
    UNION ALL
    SELECT 'payout:' || p.id, p.merchant_id, p.status::text, p.reversed_at IS NOT NULL
    FROM payout p WHERE all_of_it OR p.id = ANY (touched_payouts)
  )
  SELECT 'events_tell_every_change', coalesce(s.merchant_id, told.merchant_id), CASE
    WHEN s.cause IS NULL THEN format('events tell of %s, which is not there', told.cause)
    ELSE format('its events do not tell how %s became %s', s.cause, s.status) END
  FROM told LEFT JOIN event first ON NOT all_of_it AND told.begun = 0 AND first.id = told.first_id
    FULL JOIN subject s ON s.cause = told.cause
  WHERE CASE WHEN told.cause IS NULL THEN all_of_it ELSE
    (told.merchant_id, told.merchant_id_too) IS DISTINCT FROM (s.merchant_id, s.merchant_id)
    OR NOT told.lawful OR told.begun <> 1 AND (all_of_it OR told.begun <> 0)
    OR told.reversed <> s.back::int AND (all_of_it OR told.reversed <> 0)
    OR told.net + CASE told.begun WHEN 0 THEN hashtext(first.data->>'previous_status') ELSE 0 END <> hashtext(s.status) END
  UNION ALL
  SELECT 'events_tell_every_change', m.merchant_id, format('no event tells of the %s of %s', m.step, m.cause)
  FROM movement m
  WHERE NOT all_of_it AND m.id > since_movement AND m.step IN ('reserve', 'post', 'void', 'reverse')
    AND (m.step <> 'reverse' OR m.credit = 'available')
    AND NOT EXISTS (
      SELECT FROM (
        SELECT e.type, CASE WHEN e.type LIKE 'payout%' THEN 'payout:' || (e.data->>'payout_id')
          ELSE 'transaction:' || (e.data->>'transaction_id') END AS cause
        FROM event e WHERE e.id > before_event AND (e.type LIKE 'deposit\_%' OR e.type LIKE 'payout\_%')
      ) AS e
      WHERE e.cause = m.cause AND CASE m.step WHEN 'post' THEN e.type LIKE '%\_completed'
        WHEN 'reverse' THEN e.type LIKE '%\_reversed' WHEN 'void' THEN e.type LIKE '%\_failed' OR e.type LIKE '%\_cancelled'
        ELSE e.type LIKE '%\_processing' OR e.type LIKE '%\_pending' END);

  RETURN QUERY
  WITH subject AS (
    SELECT 'transaction:' || t.id AS cause, t.id AS transaction_id, NULL::bigint AS payout_id, t.merchant_id, t.payment_method,
      t.customer_phone AS phone, t.amount, CASE t.status WHEN 'success' THEN 'completed' ELSE t.status::text END AS status
    FROM transaction t WHERE t.transaction_type = 'deposit' AND (all_of_it OR t.id = ANY (touched))
    UNION ALL
    SELECT 'payout:' || p.id, NULL, p.id, p.merchant_id, p.payment_method, p.destination_phone, p.amount, p.status::text
    FROM payout p WHERE all_of_it OR p.id = ANY (touched_payouts)
  ), asked AS (
    SELECT r.*, coalesce('payout:' || r.payout_id, 'transaction:' || r.transaction_id) AS cause
    FROM operator_request r
    WHERE r.kind = 'disburse' AND (all_of_it OR r.transaction_id = ANY (touched) OR r.payout_id = ANY (touched_payouts))
  )
  SELECT 'statuses_agree_with_requests', coalesce(s.merchant_id, r.merchant_id), format('%s is %s, and %s',
    coalesce(s.cause, r.cause), coalesce(s.status, 'no payment out'),
    CASE WHEN r.id IS NULL THEN 'nothing was asked of the operator' ELSE format('its request over %s by %s is %s, asked about %s',
      r.amount, r.provider, r.state, coalesce(r.next_check_at::text, 'no more')) END)
  FROM subject s FULL JOIN asked r USING (cause)
  WHERE CASE
    -- What never began never left.
    WHEN r.id IS NULL THEN s.status NOT IN ('pending', 'cancelled') AND NOT (s.status = 'failed' AND NOT EXISTS (
      SELECT FROM movement m WHERE m.cause = s.cause AND m.step = 'reserve'))
    WHEN s.cause IS NULL THEN true
    ELSE (r.merchant_id = s.merchant_id AND r.amount = s.amount AND r.provider = s.payment_method AND r.phone = s.phone
      AND CASE s.status
        WHEN 'completed' THEN r.state = 'settled'
        WHEN 'reversed' THEN r.state = 'settled'
        WHEN 'failed' THEN r.state IN ('refused', 'closed') AND EXISTS (
          SELECT FROM movement m WHERE m.cause = s.cause AND m.step = 'reserve')
        -- Not decided: then somebody will ask.
        WHEN 'processing' THEN r.state IN ('sending', 'unsent', 'accepted', 'doubt') AND r.next_check_at IS NOT NULL
        ELSE false END) IS NOT TRUE END
  UNION ALL
  SELECT 'statuses_agree_with_requests', r.merchant_id, format('transaction:%s was to be paid out, and was asked for', r.transaction_id)
  FROM operator_request r JOIN transaction t ON t.id = r.transaction_id
  WHERE r.kind = 'collect' AND t.transaction_type <> 'pay' AND (all_of_it OR r.transaction_id = ANY (touched));

  -- What a person approved is what is paid, and nothing begins without.
  RETURN QUERY
  SELECT 'approvals_cover_what_is_paid', p.merchant_id, format('payout:%s is %s, its approval %s', p.id, p.status,
    CASE WHEN p.approval = 'approved' THEN 'of something else' ELSE p.approval::text END)
  FROM payout p
  WHERE (all_of_it OR p.id = ANY (touched_payouts)) AND p.approval <> 'not_required'
    AND (p.status IN ('processing', 'completed', 'failed') AND p.approval <> 'approved'
      OR p.approval_digest IS DISTINCT FROM
        payout_digest(p.merchant_id, p.payment_method, p.destination_phone, p.amount, p.reference, p.scheduled_at));

  -- It reads every payout: with the whole proof.
  RETURN QUERY
  SELECT 'payouts_are_counted', merchant_id, format('%s %s payouts by %s are there, and %s counted', coalesce(there.n, 0), status,
    payment_method, coalesce(k.n, 0))
  FROM (SELECT k.* FROM payout_count k WHERE k.n <> 0 AND all_of_it) AS k
  FULL JOIN (
    SELECT p.merchant_id, p.payment_method, p.status, count(*) AS n FROM payout p WHERE all_of_it GROUP BY 1, 2, 3
  ) AS there USING (merchant_id, payment_method, status)
  WHERE k.n IS DISTINCT FROM there.n;

  RETURN QUERY
  SELECT 'movements_have_one_cause', m.merchant_id, format('%s for %s, which is no payout of theirs', m.step, m.cause)
  FROM movement m LEFT JOIN payout p ON p.id = payout_of(m.cause)
  WHERE m.id > since_movement AND m.cause LIKE 'payout:%' AND p.merchant_id IS DISTINCT FROM m.merchant_id;

  RETURN QUERY
  SELECT 'references_are_unique', p.merchant_id, format('payout:%s and payout:%s have the same reference', other.id, p.id)
  FROM payout p JOIN payout other
    ON other.reference = p.reference AND other.merchant_id = p.merchant_id AND other.id < p.id
  WHERE all_of_it OR p.id = ANY (touched_payouts);
END $$;

-- Holds the books against every invariant, in one snapshot: what came in, and what goes out. No row: they hold.
CREATE FUNCTION audit_ledger(whole boolean) RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  RETURN QUERY SELECT * FROM audit_books(whole);
  RETURN QUERY SELECT * FROM audit_disbursements(whole);
END $$;

REVOKE EXECUTE ON FUNCTION audit_books, audit_disbursements, audit_ledger FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION audit_books FROM payments_service;
GRANT EXECUTE ON FUNCTION audit_ledger TO payments_service;
