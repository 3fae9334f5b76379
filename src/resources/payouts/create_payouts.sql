-- Creates payouts: one that goes at once with its money set aside, one for a day to come without; it reserves
-- when due. Who asks is judged first, then the reference, then the halt, then the money, in order of arrival.
-- `outcome` is `made`, `unauthenticated`, `duplicate`, `halted` or `short`; only `made` has an id, only it
-- wrote. `allowances` are of callers who are limited per day: where one is beyond it, nothing of the call
-- stays.
CREATE OR REPLACE FUNCTION create_payouts(
  merchant_ids int[], api_key_ids int[], api_key_versions int[], providers provider[], phones text[],
  amounts bigint[], refs text[], requests jsonb[], scheduled_ats timestamptz[], beneficiary_ids int[],
  beneficiary_names text[], identities uuid[], client_addresses text[], recordings audit_recording[],
  allowances key_allowance[], approval_ms bigint, waits boolean
) RETURNS TABLE (outcome text, payout_id bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
  SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  -- As the columns keep it: what goes at once is due at once.
  at timestamptz := date_trunc('milliseconds', service_now());
  reserved_at timestamptz;
  place int;
BEGIN
  PERFORM share_access(merchant_ids, waits);
  PERFORM FROM merchant_balance b WHERE b.merchant_id = ANY (merchant_ids) ORDER BY b.merchant_id FOR UPDATE;
  reserved_at := service_now() + (clock_timestamp() - now());
  FOR place, outcome, payout_id IN
  WITH RECURSIVE halt AS MATERIALIZED (
    -- Read after the locks and in the statement that moves: whoever waited meets a halt that came meanwhile.
    SELECT EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS NULL) AS on
  ), item AS MATERIALIZED (
    SELECT i.*, i.scheduled::timestamptz(3) AS scheduled_at, known.ask IS NOT NULL AS allowed, known.ask,
      old.found IS NOT NULL OR elsewhere.found IS NOT NULL AS old
    FROM unnest(merchant_ids, api_key_ids, api_key_versions, providers, phones, amounts, refs, requests,
      scheduled_ats, beneficiary_ids, beneficiary_names, identities, client_addresses, recordings)
      WITH ORDINALITY AS i (merchant_id, api_key_id, api_key_version, provider, phone, amount, reference,
        request, scheduled, beneficiary_id, beneficiary_name, identity, address, recorded_merchant_id,
        actor, recorded_address, request_id, door, operation, place)
    LEFT JOIN LATERAL (
      SELECT m.payouts_require_approval AND i.amount >= m.approval_threshold AS ask
      FROM credential k JOIN merchant m ON m.id = k.merchant_id AND m.status = 'active'
      WHERE k.id = i.api_key_id AND k.merchant_id = i.merchant_id AND k.version = i.api_key_version
        AND k.revoked_at IS NULL
        AND whitelist_allows(m.ip_whitelist, i.address)
      LIMIT 1
    ) AS known ON true
    LEFT JOIN LATERAL (
      -- Said so, only the index that identifies it can answer, whatever the planner believes of the others.
      SELECT true AS found FROM payout p
      WHERE (p.reference, p.merchant_id) BETWEEN (i.reference, i.merchant_id)
        AND (i.reference, i.merchant_id) LIMIT 1
    ) AS old ON true
    LEFT JOIN LATERAL (
      -- Another operator executed it before a restore.
      SELECT true AS found FROM operator_orphan o WHERE o.correlation_id = i.identity
        AND o.provider <> i.provider LIMIT 1
    ) AS elsewhere ON true
  ), ranked AS MATERIALIZED (
    -- Of equal references in one call the first is judged.
    SELECT item.*, first_value(item.place) OVER (PARTITION BY item.merchant_id, item.reference, item.allowed
      ORDER BY item.place)
      AS first_place
    FROM item
  ), judged AS MATERIALIZED (
    SELECT r.*, CASE
        WHEN NOT r.allowed THEN 'unauthenticated'
        WHEN r.old THEN 'duplicate'
        WHEN r.first_place <> r.place THEN 'repeated'
        WHEN r.scheduled_at IS NULL AND halt.on THEN 'halted'
      END AS verdict
    FROM ranked r, halt
  ), queue AS MATERIALIZED (
    SELECT j.merchant_id, j.amount, j.place, row_number() OVER (PARTITION BY j.merchant_id
      ORDER BY j.place) AS nth
    FROM judged j WHERE j.verdict IS NULL AND j.scheduled_at IS NULL
  ), walk AS (
    -- One step per item of a merchant: what is covered leaves less for the next.
    SELECT b.merchant_id, 0::bigint AS nth, b.available AS rest, NULL::bigint AS place, false AS covered
    FROM merchant_balance b WHERE b.merchant_id = ANY (merchant_ids)
    UNION ALL
    SELECT w.merchant_id, q.nth, CASE WHEN q.amount > w.rest THEN w.rest ELSE w.rest - q.amount END, q.place,
      q.amount <= w.rest
    FROM walk w JOIN queue q ON q.merchant_id = w.merchant_id AND q.nth = w.nth + 1
  ), chosen AS MATERIALIZED (
    SELECT j.*, nextval('payout_id_seq') AS id
    FROM judged j LEFT JOIN walk w ON w.place = j.place
    WHERE j.verdict IS NULL AND (j.scheduled_at IS NOT NULL OR w.covered)
  ), made AS (
    -- Whoever makes payouts of a merchant holds its balance: nobody takes a reference meanwhile.
    INSERT INTO payout (id, merchant_id, payment_method, destination_phone, amount, reference, scheduled_at,
      send_at, approval, approval_digest, approval_expires_at, maker, beneficiary_id, beneficiary_name,
      request_data, created_at, correlation_id)
    SELECT id, merchant_id, provider, phone, amount, reference, scheduled_at, coalesce(scheduled_at, at),
      CASE WHEN ask THEN 'pending' ELSE 'not_required' END::approval_status,
      CASE WHEN ask THEN payout_digest(merchant_id, provider, phone, amount, reference, scheduled_at) END,
      CASE WHEN ask THEN at + approval_ms * interval '1 millisecond' END,
      actor, beneficiary_id, beneficiary_name, request, at, coalesce(identity, gen_random_uuid())
    FROM chosen ORDER BY merchant_id, id
    RETURNING payout.*, payout AS self
  ), reserved AS (
    INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
    SELECT m.merchant_id, 'payout:' || m.id, 'reserve', 'available', 'reserved', m.amount, reserved_at
    FROM made m WHERE m.scheduled_at IS NULL ORDER BY m.merchant_id, m.id
  ), told AS (
    INSERT INTO event (merchant_id, type, data, created_at)
    SELECT m.merchant_id, 'payout_pending', payout_told(m.self, NULL), at FROM made m ORDER BY m.merchant_id,
      m.id
  ), entry AS (
    INSERT INTO audit_entry (merchant_id, actor, address, request_id, door, operation, is_payment, target,
      after)
    SELECT c.recorded_merchant_id, c.actor, c.recorded_address, c.request_id, c.door, c.operation, true,
      'payout:' || m.id, jsonb_build_object('amount', m.amount, 'reference', m.reference)
    FROM made m JOIN chosen c ON c.id = m.id ORDER BY c.place
    RETURNING merchant_id, id
  ), unsealed AS (
    INSERT INTO audit_unsealed (merchant_id, entry_id) SELECT merchant_id, id FROM entry
  ), ended AS MATERIALIZED (
    SELECT j.place, j.first_place, made.id, coalesce(j.verdict, CASE WHEN made.id IS NULL THEN 'short'
      ELSE 'made' END) AS outcome
    FROM judged j
    LEFT JOIN chosen c ON c.place = j.place
    LEFT JOIN made ON made.id = c.id
  )
  SELECT e.place::int, CASE WHEN e.outcome <> 'repeated' THEN e.outcome WHEN first.outcome = 'made'
    THEN 'duplicate'
      ELSE first.outcome END, e.id
  FROM ended e JOIN ended first ON first.place = e.first_place
  ORDER BY e.place
  LOOP
    IF outcome = 'made' AND (allowances[place]).api_key_id IS NOT NULL THEN
      PERFORM take_allowance(allowances[place], amounts[place]);
    END IF;
    RETURN NEXT;
  END LOOP;
END $$;

REVOKE EXECUTE ON FUNCTION create_payouts FROM PUBLIC;
GRANT EXECUTE ON FUNCTION create_payouts TO payments_service;
