-- The proof knows what is kept beyond what was asked, and that credit and excess are what the operator said.
CREATE OR REPLACE FUNCTION audit_collections(ids bigint[]) RETURNS TABLE (invariant text, merchant_id int,
  problem text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan SET jit = off SET work_mem = '64MB' SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
  causes text[] := ARRAY(SELECT 'transaction:' || id FROM unnest(ids) AS id);
  changes text[] := ARRAY(
    SELECT event_of('pending') UNION SELECT event_of(m.to_status) FROM lifecycle_move m
      WHERE m.lifecycle = 'transaction');
BEGIN
  RETURN QUERY
  WITH credit AS (
    SELECT m.* FROM movement m
    WHERE m.step = 'credit' AND m.cause = ANY (causes)
  ), paid AS (
    SELECT t.id, t.merchant_id, t.settled_amount AS amount, holder.account AS debit
    FROM transaction t JOIN (
      SELECT provider, clearing_account(provider) AS account
        FROM unnest(enum_range(NULL::provider)) provider OFFSET 0
    ) holder ON holder.provider = t.payment_method
    WHERE t.transaction_type = 'pay' AND t.status IN ('success', 'reversed') AND t.id = ANY (ids)
  )
  SELECT 'collections_credited_once', coalesce(p.merchant_id, c.merchant_id), CASE
    WHEN c.cause IS NULL THEN format('transaction:%s is paid but was never credited', p.id)
    WHEN p.id IS NULL THEN c.cause || ' was credited but is not paid'
    ELSE c.cause || ' was credited with another amount, account or merchant' END
  FROM paid p FULL JOIN credit c ON transaction_of(c.cause) = p.id
  WHERE (p.merchant_id, p.amount, p.debit, 'available'::ledger_account)
    IS DISTINCT FROM (c.merchant_id, c.amount, c.debit, c.credit);

  RETURN QUERY
  WITH back AS (
    SELECT m.cause, min(m.merchant_id) AS merchant_id, max(m.merchant_id) AS merchant_id_too,
      sum(m.amount)::bigint AS amount, min(m.credit) AS account, max(m.credit) AS account_too
    FROM movement m
    WHERE m.step IN ('reverse', 'shortfall') AND m.debit IN ('available', 'suspense')
      AND m.cause = ANY (causes)
    GROUP BY m.cause
  ), reversed AS (
    SELECT t.id, t.merchant_id, clearing_account(t.payment_method) AS account,
      t.settled_amount AS settled,
      -- With what a person credited beyond what was asked.
      t.settled_amount + CASE x.state WHEN 'credited' THEN x.said_amount - x.asked_amount ELSE 0 END AS amount
    FROM transaction t LEFT JOIN settlement_exception x ON x.merchant_id = t.merchant_id
      AND x.transaction_id = t.id
    WHERE t.transaction_type = 'pay' AND t.status = 'reversed' AND t.id = ANY (ids)
  )
  SELECT 'collections_credited_once', coalesce(r.merchant_id, b.merchant_id), CASE
    WHEN b.cause IS NULL THEN format('transaction:%s is reversed but was never given back', r.id)
    WHEN r.id IS NULL THEN b.cause || ' was given back but is not reversed'
    ELSE b.cause || ' was given back with another amount, account or merchant' END
  FROM reversed r FULL JOIN back b ON transaction_of(b.cause) = r.id
  WHERE (r.merchant_id, r.merchant_id, r.amount, r.account, r.account)
    IS DISTINCT FROM (b.merchant_id, b.merchant_id_too, b.amount, b.account, b.account_too)
    -- Or its refunds gave all of it back to the payer.
    AND NOT (b.cause IS NULL AND r.settled <= (
      SELECT coalesce(sum(g.settled_amount), 0) FROM transaction g WHERE g.refund_of_id = r.id));

  -- What the operator said beyond what was asked: booked once, and decided once.
  RETURN QUERY
  WITH money AS (
    SELECT m.cause, min(m.merchant_id) AS merchant_id, max(m.merchant_id) AS merchant_id_too,
      sum(m.amount) FILTER (WHERE m.step = 'excess') AS kept, sum(m.amount)
        FILTER (WHERE m.step = 'excess_credit') AS credited,
      sum(m.amount) FILTER (WHERE m.step = 'excess_return') AS returned,
      min(CASE m.step WHEN 'excess' THEN m.debit WHEN 'excess_return' THEN m.credit END) AS account,
      max(CASE m.step WHEN 'excess' THEN m.debit WHEN 'excess_return' THEN m.credit END) AS account_too
    FROM movement m WHERE m.step IN ('excess', 'excess_credit', 'excess_return') AND m.cause = ANY (causes)
      GROUP BY m.cause
  ), due AS (
    SELECT x.*, 'transaction:' || t.id AS cause, x.said_amount - x.asked_amount AS amount,
      clearing_account(t.payment_method) AS account,
      t.transaction_type = 'pay' AND t.amount = x.asked_amount AND t.settled_amount = x.asked_amount AS agrees
    FROM transaction t JOIN settlement_exception x ON x.merchant_id = t.merchant_id
      AND x.transaction_id = t.id
    WHERE t.id = ANY (ids)
  )
  SELECT 'collections_credited_once', coalesce(d.merchant_id, m.merchant_id),
    format('%s has an excess of %s that is %s: kept %s, credited %s, returned %s', coalesce(d.cause, m.cause),
      coalesce(d.amount, 0), coalesce(d.state::text, 'unknown'), coalesce(m.kept, 0), coalesce(m.credited, 0),
      coalesce(m.returned, 0))
  FROM due d FULL JOIN money m USING (cause)
  WHERE d.agrees IS NOT TRUE
    OR (m.merchant_id, m.merchant_id_too, m.kept, m.credited, m.returned, m.account, m.account_too)
      IS DISTINCT FROM
      (d.merchant_id, d.merchant_id, d.amount, CASE d.state WHEN 'credited' THEN d.amount END,
        CASE d.state WHEN 'returned' THEN d.amount END, d.account, d.account);

  -- A chain holds where the hashes of what was told cancel out but for the last one: each event begins where
  -- the one before it ended, none is missing, and none is told twice.
  RETURN QUERY
  WITH lawful AS MATERIALIZED (
    SELECT event_of(m.to_status) AS type, m.from_status AS was, m.to_status AS status
    FROM lifecycle_move m WHERE m.lifecycle = 'transaction'
    UNION ALL SELECT 'payment_pending', '', 'pending'
    -- The operator takes back what refunds had given back already.
    UNION ALL SELECT 'payment_reversed', 'reversed', 'reversed'
  ), told AS (
    SELECT c.transaction_id, min(c.merchant_id) AS merchant_id, max(c.merchant_id) AS merchant_id_too,
      count(*) FILTER (WHERE c.was = '') AS begun,
      bool_and(((c.type, c.was, c.status) IN (SELECT l.type, l.was, l.status
        FROM lawful l)) IS TRUE) AS lawful,
      sum(hashtext(c.status)::bigint - CASE c.was WHEN '' THEN 0 ELSE hashtext(c.was) END) AS net
    FROM (
      SELECT e.id, e.merchant_id, e.type, transaction_of(event_cause(e.data)) AS transaction_id,
        e.data->>'status' AS status, coalesce(e.data->>'previous_status', '') AS was
      FROM event e WHERE event_cause(e.data) = ANY (causes) AND e.type = ANY (changes)
      OFFSET 0
    ) c GROUP BY c.transaction_id
  )
  SELECT 'events_tell_every_change', coalesce(t.merchant_id, told.merchant_id), CASE
    WHEN t.id IS NULL THEN format('events tell of transaction:%s, which is not there', told.transaction_id)
    ELSE format('its events do not tell how transaction:%s became %s', t.id, t.status) END
  FROM told FULL JOIN (
    SELECT * FROM transaction WHERE transaction_type = 'pay' AND id = ANY (ids)
  ) t ON t.id = told.transaction_id
  WHERE told.transaction_id IS NULL OR told.begun <> 1 OR NOT told.lawful
    OR told.net <> hashtext(t.status::text)
    OR (told.merchant_id, told.merchant_id_too) IS DISTINCT FROM (t.merchant_id, t.merchant_id);

  RETURN QUERY
  SELECT 'statuses_agree_with_requests', t.merchant_id, format('transaction:%s is %s, and %s', t.id, t.status,
    CASE WHEN r.id IS NULL THEN 'nothing was asked of the operator'
      ELSE format('its request over %s by %s is %s, asked about %s%s', r.amount, r.provider, r.state,
        coalesce(r.next_check_at::text, 'no more'), '; the operator said ' || (r.evidence->>'amount')) END)
  FROM transaction t
    LEFT JOIN settlement_exception x ON x.merchant_id = t.merchant_id AND x.transaction_id = t.id
  LEFT JOIN (SELECT * FROM operator_request WHERE transaction_id = ANY (ids) AND kind = 'collect') r
    ON r.merchant_id = t.merchant_id AND r.transaction_id = t.id
  WHERE t.transaction_type = 'pay' AND t.id = ANY (ids)
    AND (r.amount = t.amount AND r.provider = t.payment_method AND CASE t.status
      -- What is credited and kept is what the operator said.
      WHEN 'success' THEN r.state = 'settled'
        AND coalesce((r.evidence->>'amount')::numeric = coalesce(x.said_amount, t.settled_amount), true)
      WHEN 'reversed' THEN r.state = 'settled'
      WHEN 'failed' THEN r.state IN ('refused', 'closed')
      WHEN 'cancelled' THEN r.state = 'closed'
      WHEN 'expired' THEN r.state NOT IN ('settled', 'refused')
      -- Not decided: then somebody will ask.
      ELSE r.state IN ('sending', 'unsent', 'accepted', 'doubt')
        AND r.next_check_at IS NOT NULL END) IS NOT TRUE
  UNION ALL
  SELECT 'statuses_agree_with_requests', r.merchant_id, format(
    'transaction:%s was asked of the operator twice', r.transaction_id)
  FROM operator_request r JOIN operator_request other
    ON other.transaction_id = r.transaction_id AND other.merchant_id = r.merchant_id AND other.kind = r.kind
      AND other.id < r.id
  WHERE r.transaction_id = ANY (ids) AND other.transaction_id = ANY (ids);

  RETURN QUERY
  SELECT 'references_are_unique', t.merchant_id, 
    format('transaction:%s and transaction:%s have the same reference', other.id, t.id)
  FROM transaction t JOIN transaction other
    ON other.reference = t.reference AND other.merchant_id = t.merchant_id AND other.id < t.id
  WHERE t.id = ANY (ids);
END $$;

REVOKE EXECUTE ON FUNCTION audit_collections FROM PUBLIC;
