-- Proves collections: their credits, reversals, excesses, events, requests and references. An excess has its
-- own entry; credit and excess together are the amount that the operator confirmed.
CREATE OR REPLACE FUNCTION audit_collections(ids bigint[])
RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan SET jit = off SET work_mem = '64MB' SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
  origins text[] := ARRAY(SELECT 'transaction:' || id FROM unnest(ids) AS id);
  changes text[] := ARRAY(
    SELECT event_of('pending') UNION SELECT event_of(m.to_status) FROM lifecycle_move m
      WHERE m.lifecycle = 'transaction');
BEGIN
  RETURN QUERY
  WITH credit AS (
    SELECT m.* FROM ledger_entry m
    WHERE m.step = 'credit' AND m.origin = ANY (origins)
  ), paid AS (
    SELECT t.id, t.merchant_id, t.settled_amount AS amount, clearing.account AS debit
    FROM transaction t JOIN (
      SELECT provider, clearing_account(provider) AS account
        FROM unnest(enum_range(NULL::provider)) provider OFFSET 0
    ) clearing ON clearing.provider = t.payment_method
    WHERE t.transaction_type = 'pay' AND t.status IN ('success', 'reversed') AND t.id = ANY (ids)
  )
  SELECT 'collections_credited_once', coalesce(p.merchant_id, c.merchant_id), CASE
    WHEN c.origin IS NULL THEN format('transaction:%s is paid but was never credited', p.id)
    WHEN p.id IS NULL THEN c.origin || ' was credited but is not paid'
    ELSE c.origin || ' was credited with another amount, account or merchant' END
  FROM paid p FULL JOIN credit c ON transaction_of(c.origin) = p.id
  WHERE (p.merchant_id, p.amount, p.debit, 'available'::ledger_account)
    IS DISTINCT FROM (c.merchant_id, c.amount, c.debit, c.credit);

  RETURN QUERY
  WITH back AS (
    SELECT m.origin, min(m.merchant_id) AS merchant_id, max(m.merchant_id) AS merchant_id_too,
      sum(m.amount)::bigint AS amount, min(m.credit) AS account, max(m.credit) AS account_too
    FROM ledger_entry m
    WHERE m.step IN ('reverse', 'shortfall') AND m.debit IN ('available', 'suspense')
      AND m.origin = ANY (origins)
    GROUP BY m.origin
  ), reversed AS (
    SELECT t.id, t.merchant_id, clearing_account(t.payment_method) AS account,
      t.settled_amount AS settled,
      -- The amount to give back: the settled amount, and an excess that was credited.
      t.settled_amount + CASE x.state WHEN 'credited' THEN x.confirmed_amount - x.requested_amount
        ELSE 0 END AS amount
    FROM transaction t LEFT JOIN settlement_exception x ON x.merchant_id = t.merchant_id
      AND x.transaction_id = t.id
    WHERE t.transaction_type = 'pay' AND t.status = 'reversed' AND t.id = ANY (ids)
  )
  SELECT 'collections_credited_once', coalesce(r.merchant_id, b.merchant_id), CASE
    WHEN b.origin IS NULL THEN format('transaction:%s is reversed but was never given back', r.id)
    WHEN r.id IS NULL THEN b.origin || ' was given back but is not reversed'
    ELSE b.origin || ' was given back with another amount, account or merchant' END
  FROM reversed r FULL JOIN back b ON transaction_of(b.origin) = r.id
  WHERE (r.merchant_id, r.merchant_id, r.amount, r.account, r.account)
    IS DISTINCT FROM (b.merchant_id, b.merchant_id_too, b.amount, b.account, b.account_too)
    -- Allowed: a reversed collection without such an entry, if its refunds had returned the settled amount.
    AND NOT (b.origin IS NULL AND r.settled <= (
      SELECT coalesce(sum(CASE x.state WHEN 'paid' THEN g.amount ELSE g.settled_amount END), 0)
      FROM transaction g LEFT JOIN settlement_exception x ON x.merchant_id = g.merchant_id
        AND x.transaction_id = g.id
      WHERE g.refund_of_id = r.id));

  RETURN QUERY SELECT * FROM audit_excesses(ids, origins);
  RETURN QUERY SELECT * FROM audit_collection_events(ids, origins, changes);
  RETURN QUERY SELECT * FROM audit_collection_requests(ids);

  RETURN QUERY
  SELECT 'references_are_unique', t.merchant_id,
    format('transaction:%s and transaction:%s have the same reference', other.id, t.id)
  FROM transaction t JOIN transaction other
    ON other.reference = t.reference AND other.merchant_id = t.merchant_id AND other.id < t.id
  WHERE t.id = ANY (ids);
END $$;
