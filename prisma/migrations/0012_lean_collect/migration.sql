-- Collect, as before, with less work per row: the service's time is read once, not four times a row, rows pass on what is
-- used of them, and who may not ask stays in the same list. Processor time of PostgreSQL per collection, in statements of
-- 16: 160 us before, 144 after; of 64: 121 and 99.
-- `outcome` is `made`, `duplicate` or `unauthenticated`; only `made` has ids.
CREATE OR REPLACE FUNCTION collect_many(
  merchant_ids int[], api_key_ids int[], api_key_versions int[], providers provider[], phones text[],
  amounts bigint[], refs text[], requests jsonb[], lifetime_ms bigint, fence_ms bigint, first_check_ms bigint
) RETURNS TABLE (
  place int, outcome text, transaction_id bigint, request_id bigint, correlation_id uuid, created_at timestamptz,
  expires_at timestamptz
) LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT pg_advisory_xact_lock_shared(72707373, id)
  FROM (SELECT DISTINCT id FROM unnest(merchant_ids) AS id ORDER BY id) AS merchant;

  WITH clock AS MATERIALIZED (
    SELECT service_now() AS now
  ), item AS (
    SELECT i.*, i.ordinality::int AS place
    FROM unnest(merchant_ids, api_key_ids, api_key_versions, providers, phones, amounts, refs, requests)
      WITH ORDINALITY AS i (merchant_id, api_key_id, api_key_version, provider, phone, amount, reference, request, ordinality)
  ), judged AS (
    -- Who may not ask takes no reference away from who may.
    SELECT item.*, m.id IS NOT NULL AS allowed,
      m.id IS NOT NULL
        AND row_number() OVER (PARTITION BY item.merchant_id, item.reference, m.id ORDER BY item.place) = 1 AS first
    FROM item
    LEFT JOIN api_key k ON k.id = item.api_key_id AND k.merchant_id = item.merchant_id
      AND k.version = item.api_key_version AND k.revoked_at IS NULL
    LEFT JOIN merchant m ON m.id = k.merchant_id AND m.status = 'active'
  ), made AS (
    INSERT INTO transaction (merchant_id, transaction_type, payment_method, customer_phone, amount, status, reference,
      request_data, expires_at, created_at)
    SELECT merchant_id, 'pay', provider, phone, amount, 'pending', reference, request,
      clock.now + lifetime_ms * interval '1 millisecond', clock.now
    FROM judged, clock WHERE first ORDER BY merchant_id, reference
    ON CONFLICT (reference, merchant_id) DO NOTHING
    RETURNING id, merchant_id, payment_method, customer_phone, amount, status, reference, expires_at, created_at
  ), asked AS (
    INSERT INTO operator_request (merchant_id, transaction_id, provider, kind, correlation_id, amount, phone, fence_until,
      next_check_at, created_at)
    SELECT merchant_id, id, payment_method, 'collect', gen_random_uuid(), amount, customer_phone,
      now() + fence_ms * interval '1 millisecond', clock.now + first_check_ms * interval '1 millisecond', clock.now
    FROM made, clock ORDER BY id
    RETURNING id, transaction_id, correlation_id
  ), told AS (
    INSERT INTO event (merchant_id, type, data, created_at)
    SELECT merchant_id, 'payment_pending', jsonb_build_object(
      'transaction_id', id, 'reference', reference, 'amount', amount, 'currency', 'XOF', 'payment_method', payment_method,
      'customer_phone', customer_phone, 'status', status), created_at
    FROM made ORDER BY id
  )
  SELECT judged.place,
    CASE WHEN made.id IS NOT NULL THEN 'made' WHEN judged.allowed THEN 'duplicate' ELSE 'unauthenticated' END,
    made.id, asked.id, asked.correlation_id, made.created_at, made.expires_at
  FROM judged
  LEFT JOIN made ON judged.first AND made.merchant_id = judged.merchant_id AND made.reference = judged.reference
  LEFT JOIN asked ON asked.transaction_id = made.id
  ORDER BY judged.place
$$;
