-- Revocation: a key that was regenerated or revoked, or an account that was deactivated, moves no more money from the
-- moment that is committed, and before that every money statement that had already looked at it has committed as well.
-- Who moves a merchant's money shares a lock of that merchant; who ends a key or an account has it alone. It lies in
-- memory: a lock on the key's own row would be written to disk with every payment.

-- Whatever ends access waits here for the money under way, and makes what comes after it wait.
CREATE FUNCTION end_access() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(72707373, (to_jsonb(OLD) ->> TG_ARGV[0])::int);
  RETURN NEW;
END $$;
CREATE TRIGGER "api_key_access" BEFORE UPDATE OF "version", "revoked_at", "merchant_id" ON "api_key"
  FOR EACH ROW EXECUTE FUNCTION end_access('merchant_id');
CREATE TRIGGER "merchant_access" BEFORE UPDATE OF "status" ON "merchant" FOR EACH ROW EXECUTE FUNCTION end_access('id');

-- Collect: records the payment, the intent to ask the operator, and the event, in this order of arrival.
-- The key's version and the account are checked once more here, so that money stops the moment a key is regenerated: in
-- a statement that begins under the locks (in id order), and so sees what the wait for them was for.
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

  WITH item AS (
    SELECT i.*, i.ordinality::int AS place
    FROM unnest(merchant_ids, api_key_ids, api_key_versions, providers, phones, amounts, refs, requests)
      WITH ORDINALITY AS i (merchant_id, api_key_id, api_key_version, provider, phone, amount, reference, request, ordinality)
  ), allowed AS (
    -- Who may not ask takes no reference away from who may.
    SELECT item.*, row_number() OVER (PARTITION BY item.merchant_id, item.reference ORDER BY item.place) = 1 AS first
    FROM item
    JOIN api_key k ON k.id = item.api_key_id AND k.merchant_id = item.merchant_id
      AND k.version = item.api_key_version AND k.revoked_at IS NULL
    JOIN merchant m ON m.id = item.merchant_id AND m.status = 'active'
  ), made AS (
    INSERT INTO transaction (merchant_id, transaction_type, payment_method, customer_phone, amount, status, reference,
      request_data, expires_at, created_at)
    SELECT merchant_id, 'pay', provider, phone, amount, 'pending', reference, request,
      service_now() + lifetime_ms * interval '1 millisecond', service_now()
    FROM allowed WHERE first ORDER BY merchant_id, reference
    ON CONFLICT (reference, merchant_id) DO NOTHING
    RETURNING *
  ), asked AS (
    INSERT INTO operator_request (merchant_id, transaction_id, provider, kind, correlation_id, amount, phone, fence_until,
      next_check_at, created_at)
    SELECT merchant_id, id, payment_method, 'collect', gen_random_uuid(), amount, customer_phone,
      now() + fence_ms * interval '1 millisecond', service_now() + first_check_ms * interval '1 millisecond', service_now()
    FROM made ORDER BY id
    RETURNING *
  ), told AS (
    INSERT INTO event (merchant_id, type, data, created_at)
    SELECT merchant_id, 'payment_pending', jsonb_build_object(
      'transaction_id', id, 'reference', reference, 'amount', amount, 'currency', 'XOF', 'payment_method', payment_method,
      'customer_phone', customer_phone, 'status', status), created_at
    FROM made ORDER BY id
  )
  SELECT item.place,
    CASE WHEN made.id IS NOT NULL THEN 'made' WHEN allowed.place IS NULL THEN 'unauthenticated' ELSE 'duplicate' END,
    made.id, asked.id, asked.correlation_id, made.created_at, made.expires_at
  FROM item
  LEFT JOIN allowed USING (place)
  LEFT JOIN made ON allowed.first AND made.merchant_id = item.merchant_id AND made.reference = item.reference
  LEFT JOIN asked ON asked.transaction_id = made.id
  ORDER BY item.place
$$;

REVOKE EXECUTE ON FUNCTION end_access FROM PUBLIC;
