-- Plans that stay right while tables grow. A session keeps the plan that it made when a table was small or had never been
-- analysed, and between indexes that promise the same the planner takes the newest: the check of the key below read every
-- row of a merchant. So the index that identifies a transaction of a merchant is made last, and the service's sessions
-- never choose to read a whole table (`src/database/client.ts`); what does read whole tables says so here.
ALTER TABLE "operator_request" DROP CONSTRAINT "operator_request_merchant_id_transaction_id_fkey";
DROP INDEX "transaction_merchant_id_id_key";
CREATE UNIQUE INDEX "transaction_merchant_id_id_key" ON "transaction"("merchant_id", "id");
ALTER TABLE "operator_request" ADD CONSTRAINT "operator_request_merchant_id_transaction_id_fkey"
  FOREIGN KEY ("merchant_id", "transaction_id") REFERENCES "transaction"("merchant_id", "id") ON DELETE RESTRICT ON UPDATE CASCADE;
ALTER FUNCTION audit_ledger SET enable_seqscan = on;

-- Collect, as before, planned once: the keys are looked up one by one whatever the planner believes of the tables, and ids
-- are drawn first, so that items find their rows by them; of two with the same reference the later conflicts by itself.
-- PostgreSQL's time per collection on a database that was never analysed: in statements of 16 from 546 us to 101, alone
-- from 1,165 us to 646.
-- `outcome` is `made`, `duplicate` or `unauthenticated`; only `made` has ids.
CREATE OR REPLACE FUNCTION collect_many(
  merchant_ids int[], api_key_ids int[], api_key_versions int[], providers provider[], phones text[],
  amounts bigint[], refs text[], requests jsonb[], lifetime_ms bigint, fence_ms bigint, first_check_ms bigint
) RETURNS TABLE (
  place int, outcome text, transaction_id bigint, request_id bigint, correlation_id uuid, created_at timestamptz,
  expires_at timestamptz
) LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
  SELECT pg_advisory_xact_lock_shared(72707373, id)
  FROM (SELECT DISTINCT id FROM unnest(merchant_ids) AS id ORDER BY id) AS merchant;

  WITH clock AS MATERIALIZED (
    SELECT service_now() AS now
  ), item AS MATERIALIZED (
    -- Who may not ask gets no id, and takes no reference away from who may.
    SELECT i.*, CASE WHEN known.active THEN nextval('transaction_id_seq') END AS id
    FROM unnest(merchant_ids, api_key_ids, api_key_versions, providers, phones, amounts, refs, requests)
      WITH ORDINALITY AS i (merchant_id, api_key_id, api_key_version, provider, phone, amount, reference, request, place)
    LEFT JOIN LATERAL (
      SELECT true AS active FROM api_key k JOIN merchant m ON m.id = k.merchant_id AND m.status = 'active'
      WHERE k.id = i.api_key_id AND k.merchant_id = i.merchant_id AND k.version = i.api_key_version AND k.revoked_at IS NULL
      LIMIT 1
    ) AS known ON true
  ), made AS (
    INSERT INTO transaction (id, merchant_id, transaction_type, payment_method, customer_phone, amount, status, reference,
      request_data, expires_at, created_at)
    SELECT id, merchant_id, 'pay', provider, phone, amount, 'pending', reference, request,
      clock.now + lifetime_ms * interval '1 millisecond', clock.now
    FROM item, clock WHERE id IS NOT NULL ORDER BY merchant_id, reference, place
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
  SELECT item.place::int,
    CASE WHEN made.id IS NOT NULL THEN 'made' WHEN item.id IS NOT NULL THEN 'duplicate' ELSE 'unauthenticated' END,
    made.id, asked.id, asked.correlation_id, made.created_at, made.expires_at
  FROM item
  LEFT JOIN made ON made.id = item.id
  LEFT JOIN asked ON asked.transaction_id = made.id
  ORDER BY item.place
$$;
