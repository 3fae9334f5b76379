-- What reserves money says when it had the balance, not when it began to wait for it: lines of a statement are in the order in
-- which their money moved, and no balance of a past moment is negative. Otherwise these are as before.

CREATE OR REPLACE FUNCTION deposit_many(
  merchant_ids int[], api_key_ids int[], api_key_versions int[], providers provider[], phones text[], amounts bigint[],
  refs text[], requests jsonb[], refund_of_ids bigint[], fence_ms bigint, first_check_ms bigint
) RETURNS TABLE (
  place int, outcome text, transaction_id bigint, request_id bigint, correlation_id uuid, created_at timestamptz
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  at timestamptz;
BEGIN
  PERFORM pg_advisory_xact_lock_shared(72707373, id)
  FROM (SELECT DISTINCT id FROM unnest(merchant_ids) AS id ORDER BY id) AS merchant;
  -- What is given back of a collection changes under its lock only.
  PERFORM FROM transaction t WHERE t.id = ANY (refund_of_ids) ORDER BY t.id FOR UPDATE;
  PERFORM FROM merchant_balance b WHERE b.merchant_id = ANY (merchant_ids) ORDER BY b.merchant_id FOR UPDATE;
  at := service_now() + (clock_timestamp() - now());
  RETURN QUERY
  WITH RECURSIVE halt AS MATERIALIZED (
    -- Read after the locks and in the statement that moves: whoever waited meets a halt that came meanwhile.
    SELECT EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS NULL) AS on
  ), item AS MATERIALIZED (
    SELECT i.*, known.active IS NOT NULL AS allowed, old.found IS NOT NULL AS old, original.rest
    FROM unnest(merchant_ids, api_key_ids, api_key_versions, providers, phones, amounts, refs, requests, refund_of_ids)
      WITH ORDINALITY AS i (merchant_id, api_key_id, api_key_version, provider, phone, amount, reference, request,
        refund_of_id, place)
    LEFT JOIN LATERAL (
      SELECT true AS active FROM api_key k JOIN merchant m ON m.id = k.merchant_id AND m.status = 'active'
      WHERE k.id = i.api_key_id AND k.merchant_id = i.merchant_id AND k.version = i.api_key_version AND k.revoked_at IS NULL
      LIMIT 1
    ) AS known ON true
    LEFT JOIN LATERAL (
      -- Said so, only the index that identifies it can answer, whatever the planner believes of the others.
      SELECT true AS found FROM transaction t
      WHERE (t.reference, t.merchant_id) BETWEEN (i.reference, i.merchant_id) AND (i.reference, i.merchant_id) LIMIT 1
    ) AS old ON true
    -- What is left of a collection: paid, less what was given back and what is on its way.
    LEFT JOIN LATERAL (
      SELECT t.settled_amount - (
        SELECT coalesce(sum(CASE r.status WHEN 'success' THEN r.settled_amount WHEN 'processing' THEN r.amount END), 0)
        FROM transaction r WHERE r.refund_of_id = t.id) AS rest
      FROM transaction t
      WHERE t.id = i.refund_of_id AND t.merchant_id = i.merchant_id AND t.transaction_type = 'pay' AND t.status = 'success'
      LIMIT 1
    ) AS original ON true
  ), ranked AS MATERIALIZED (
    -- Of equal references in one call the first is judged.
    SELECT item.*, first_value(item.place) OVER (PARTITION BY item.merchant_id, item.reference, item.allowed ORDER BY item.place)
      AS first_place
    FROM item
  ), judged AS MATERIALIZED (
    SELECT r.*, CASE
        WHEN NOT r.allowed THEN 'unauthenticated'
        WHEN r.old THEN 'duplicate'
        WHEN r.first_place <> r.place THEN 'repeated'
        WHEN r.refund_of_id IS NOT NULL AND r.rest IS NULL THEN 'not_refundable'
        WHEN r.amount > r.rest THEN 'too_large'
        WHEN halt.on THEN 'halted'
        WHEN r.refund_of_id IS NOT NULL AND row_number() OVER (
          PARTITION BY r.refund_of_id, r.allowed AND NOT r.old AND r.first_place = r.place AND r.amount <= r.rest
          ORDER BY r.place) > 1 THEN 'again'
      END AS verdict
    FROM ranked r, halt
  ), queue AS MATERIALIZED (
    SELECT j.merchant_id, j.amount, j.place, row_number() OVER (PARTITION BY j.merchant_id ORDER BY j.place) AS nth
    FROM judged j WHERE j.verdict IS NULL
  ), walk AS (
    -- One step per item of a merchant: what is covered leaves less for the next.
    SELECT b.merchant_id, 0::bigint AS nth, b.available AS rest, NULL::bigint AS place, false AS covered
    FROM merchant_balance b WHERE b.merchant_id = ANY (merchant_ids)
    UNION ALL
    SELECT w.merchant_id, q.nth, CASE WHEN q.amount > w.rest THEN w.rest ELSE w.rest - q.amount END, q.place, q.amount <= w.rest
    FROM walk w JOIN queue q ON q.merchant_id = w.merchant_id AND q.nth = w.nth + 1
  ), covered AS MATERIALIZED (
    SELECT j.*, nextval('transaction_id_seq') AS id FROM judged j JOIN walk w ON w.place = j.place AND w.covered
  ), made AS (
    -- A collection may take the reference at this moment: who is there first has it.
    INSERT INTO transaction (id, merchant_id, transaction_type, payment_method, customer_phone, amount, status, reference,
      request_data, refund_of_id, created_at)
    SELECT id, merchant_id, 'deposit', provider, phone, amount, 'processing', reference, request, refund_of_id, at
    FROM covered ORDER BY merchant_id, reference
    ON CONFLICT (reference, merchant_id) DO NOTHING
    RETURNING id, merchant_id, payment_method, customer_phone, amount, status, reference, refund_of_id, created_at
  ), reserved AS (
    INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
    SELECT merchant_id, 'transaction:' || id, 'reserve', 'available', 'reserved', amount, at FROM made ORDER BY merchant_id, id
  ), asked AS (
    INSERT INTO operator_request (merchant_id, transaction_id, provider, kind, correlation_id, amount, phone, fence_until,
      next_check_at, created_at)
    SELECT merchant_id, id, payment_method, 'disburse', gen_random_uuid(), amount, customer_phone,
      now() + fence_ms * interval '1 millisecond', at + first_check_ms * interval '1 millisecond', at
    FROM made ORDER BY id
    RETURNING id, transaction_id, correlation_id
  ), told AS (
    INSERT INTO event (merchant_id, type, data, created_at)
    SELECT merchant_id, 'deposit_processing', jsonb_strip_nulls(jsonb_build_object(
      'transaction_id', id, 'reference', reference, 'amount', amount, 'currency', 'XOF', 'payment_method', payment_method,
      'customer_phone', customer_phone, 'status', status, 'refund_of', refund_of_id)), at
    FROM made ORDER BY merchant_id, id
  ), ended AS MATERIALIZED (
    SELECT j.place, j.first_place, made.id, asked.id AS request_id, asked.correlation_id, made.created_at, CASE
        WHEN j.verdict IS NOT NULL THEN j.verdict
        WHEN made.id IS NOT NULL THEN 'made'
        WHEN c.id IS NOT NULL THEN 'duplicate'
        -- Money was kept for one that was not made after all.
        WHEN EXISTS (
          SELECT FROM covered o WHERE o.merchant_id = j.merchant_id AND o.place < j.place AND o.id NOT IN (SELECT m.id FROM made m)
        ) THEN 'again'
        ELSE 'short'
      END AS outcome
    FROM judged j
    LEFT JOIN covered c ON c.place = j.place
    LEFT JOIN made ON made.id = c.id
    LEFT JOIN asked ON asked.transaction_id = made.id
  )
  SELECT e.place::int, CASE WHEN e.outcome <> 'repeated' THEN e.outcome WHEN first.outcome = 'made' THEN 'duplicate'
      ELSE first.outcome END, e.id, e.request_id, e.correlation_id, e.created_at
  FROM ended e JOIN ended first ON first.place = e.first_place
  ORDER BY e.place;
END $$;

CREATE OR REPLACE FUNCTION create_payouts(
  merchant_ids int[], api_key_ids int[], api_key_versions int[], providers provider[], phones text[], amounts bigint[],
  refs text[], requests jsonb[], scheduled_ats timestamptz[], beneficiary_ids int[], beneficiary_names text[], makers text[],
  approval_ms bigint
) RETURNS TABLE (place int, outcome text, payout_id bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  -- As the columns keep it: what goes at once is due at once.
  at timestamptz := date_trunc('milliseconds', service_now());
  reserved_at timestamptz;
BEGIN
  PERFORM pg_advisory_xact_lock_shared(72707373, id)
  FROM (SELECT DISTINCT id FROM unnest(merchant_ids) AS id ORDER BY id) AS merchant;
  PERFORM FROM merchant_balance b WHERE b.merchant_id = ANY (merchant_ids) ORDER BY b.merchant_id FOR UPDATE;
  reserved_at := service_now() + (clock_timestamp() - now());
  RETURN QUERY
  WITH RECURSIVE halt AS MATERIALIZED (
    -- Read after the locks and in the statement that moves: whoever waited meets a halt that came meanwhile.
    SELECT EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS NULL) AS on
  ), item AS MATERIALIZED (
    SELECT i.*, i.scheduled::timestamptz(3) AS scheduled_at, known.ask IS NOT NULL AS allowed, known.ask,
      old.found IS NOT NULL AS old
    FROM unnest(merchant_ids, api_key_ids, api_key_versions, providers, phones, amounts, refs, requests, scheduled_ats,
      beneficiary_ids, beneficiary_names, makers)
      WITH ORDINALITY AS i (merchant_id, api_key_id, api_key_version, provider, phone, amount, reference, request, scheduled,
        beneficiary_id, beneficiary_name, maker, place)
    LEFT JOIN LATERAL (
      SELECT m.payouts_require_approval AND i.amount >= m.approval_threshold AS ask
      FROM api_key k JOIN merchant m ON m.id = k.merchant_id AND m.status = 'active'
      WHERE k.id = i.api_key_id AND k.merchant_id = i.merchant_id AND k.version = i.api_key_version AND k.revoked_at IS NULL
      LIMIT 1
    ) AS known ON true
    LEFT JOIN LATERAL (
      -- Said so, only the index that identifies it can answer, whatever the planner believes of the others.
      SELECT true AS found FROM payout p
      WHERE (p.reference, p.merchant_id) BETWEEN (i.reference, i.merchant_id) AND (i.reference, i.merchant_id) LIMIT 1
    ) AS old ON true
  ), ranked AS MATERIALIZED (
    -- Of equal references in one call the first is judged.
    SELECT item.*, first_value(item.place) OVER (PARTITION BY item.merchant_id, item.reference, item.allowed ORDER BY item.place)
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
    SELECT j.merchant_id, j.amount, j.place, row_number() OVER (PARTITION BY j.merchant_id ORDER BY j.place) AS nth
    FROM judged j WHERE j.verdict IS NULL AND j.scheduled_at IS NULL
  ), walk AS (
    -- One step per item of a merchant: what is covered leaves less for the next.
    SELECT b.merchant_id, 0::bigint AS nth, b.available AS rest, NULL::bigint AS place, false AS covered
    FROM merchant_balance b WHERE b.merchant_id = ANY (merchant_ids)
    UNION ALL
    SELECT w.merchant_id, q.nth, CASE WHEN q.amount > w.rest THEN w.rest ELSE w.rest - q.amount END, q.place, q.amount <= w.rest
    FROM walk w JOIN queue q ON q.merchant_id = w.merchant_id AND q.nth = w.nth + 1
  ), chosen AS MATERIALIZED (
    SELECT j.*, nextval('payout_id_seq') AS id
    FROM judged j LEFT JOIN walk w ON w.place = j.place
    WHERE j.verdict IS NULL AND (j.scheduled_at IS NOT NULL OR w.covered)
  ), made AS (
    -- Whoever makes payouts of a merchant holds its balance: nobody takes a reference meanwhile.
    INSERT INTO payout (id, merchant_id, payment_method, destination_phone, amount, reference, scheduled_at, send_at, approval,
      approval_digest, approval_expires_at, maker, beneficiary_id, beneficiary_name, request_data, created_at)
    SELECT id, merchant_id, provider, phone, amount, reference, scheduled_at, coalesce(scheduled_at, at),
      CASE WHEN ask THEN 'pending' ELSE 'not_required' END::approval_status,
      CASE WHEN ask THEN payout_digest(merchant_id, provider, phone, amount, reference, scheduled_at) END,
      CASE WHEN ask THEN at + approval_ms * interval '1 millisecond' END,
      maker, beneficiary_id, beneficiary_name, request, at
    FROM chosen ORDER BY merchant_id, id
    RETURNING payout.*, payout AS self
  ), reserved AS (
    INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
    SELECT m.merchant_id, 'payout:' || m.id, 'reserve', 'available', 'reserved', m.amount, reserved_at
    FROM made m WHERE m.scheduled_at IS NULL ORDER BY m.merchant_id, m.id
  ), told AS (
    INSERT INTO event (merchant_id, type, data, created_at)
    SELECT m.merchant_id, 'payout_pending', payout_told(m.self, NULL), at FROM made m ORDER BY m.merchant_id, m.id
  ), ended AS MATERIALIZED (
    SELECT j.place, j.first_place, made.id, coalesce(j.verdict, CASE WHEN made.id IS NULL THEN 'short' ELSE 'made' END) AS outcome
    FROM judged j
    LEFT JOIN chosen c ON c.place = j.place
    LEFT JOIN made ON made.id = c.id
  )
  SELECT e.place::int, CASE WHEN e.outcome <> 'repeated' THEN e.outcome WHEN first.outcome = 'made' THEN 'duplicate'
      ELSE first.outcome END, e.id
  FROM ended e JOIN ended first ON first.place = e.first_place
  ORDER BY e.place;
END $$;

CREATE OR REPLACE FUNCTION begin_payouts(operator provider, take int, fence_ms bigint, first_check_ms bigint)
RETURNS TABLE (
  outcome text, payout_id bigint, request_id bigint, correlation_id uuid, merchant_id int, amount bigint, phone text,
  request jsonb, created_at timestamptz
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  at timestamptz := service_now();
  chosen bigint[];
  merchants int[];
BEGIN
  IF EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS NULL) THEN RETURN; END IF;
  SELECT array_agg(c.id), array_agg(DISTINCT c.merchant_id) INTO chosen, merchants
  FROM (
    SELECT turn.id, turn.merchant_id
    FROM (
      SELECT due.*, row_number() OVER (PARTITION BY due.merchant_id ORDER BY due.send_at, due.id) AS nth
      FROM (
        SELECT p.id, p.merchant_id, p.send_at
        FROM payout p JOIN LATERAL (
          SELECT FROM merchant m WHERE m.id = p.merchant_id AND m.status = 'active' LIMIT 1) AS active ON true
        WHERE p.payment_method = operator AND p.status = 'pending' AND p.approval IN ('not_required', 'approved')
          AND p.send_at <= at
        ORDER BY p.send_at, p.id LIMIT 512
      ) AS due
    ) AS turn
    ORDER BY turn.nth, turn.send_at, turn.id LIMIT take
  ) AS c;
  IF chosen IS NULL THEN RETURN; END IF;
  PERFORM pg_advisory_xact_lock_shared(72707373, id) FROM (SELECT id FROM unnest(merchants) AS id ORDER BY id) AS merchant;
  -- What somebody else begins or cancels at this moment is theirs.
  SELECT array_agg(held.id), array_agg(DISTINCT held.merchant_id) INTO chosen, merchants
  FROM (
    SELECT p.id, p.merchant_id FROM payout p
    WHERE p.id = ANY (chosen) AND p.status = 'pending' AND p.approval IN ('not_required', 'approved')
    ORDER BY p.id FOR UPDATE SKIP LOCKED
  ) AS held;
  IF chosen IS NULL THEN RETURN; END IF;
  PERFORM FROM merchant_balance b WHERE b.merchant_id = ANY (merchants) ORDER BY b.merchant_id FOR UPDATE;
  at := service_now() + (clock_timestamp() - now());
  RETURN QUERY
  WITH RECURSIVE halt AS MATERIALIZED (
    -- Read after the locks and in the statement that moves: whoever waited meets a halt that came meanwhile.
    SELECT EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS NULL) AS on
  ), item AS MATERIALIZED (
    SELECT p.id, p.merchant_id, p.amount, p.send_at, p.scheduled_at IS NOT NULL AS asks
    FROM halt, payout p JOIN LATERAL (
      SELECT FROM merchant m WHERE m.id = p.merchant_id AND m.status = 'active' LIMIT 1) AS active ON true
    WHERE p.id = ANY (chosen) AND NOT halt.on
  ), queue AS MATERIALIZED (
    SELECT i.*, row_number() OVER (PARTITION BY i.merchant_id ORDER BY i.send_at, i.id) AS nth FROM item i WHERE i.asks
  ), walk AS (
    -- One step per item of a merchant: what is covered leaves less for the next.
    SELECT b.merchant_id, 0::bigint AS nth, b.available AS rest, NULL::bigint AS id, false AS covered
    FROM merchant_balance b WHERE b.merchant_id = ANY (merchants)
    UNION ALL
    SELECT w.merchant_id, q.nth, CASE WHEN q.amount > w.rest THEN w.rest ELSE w.rest - q.amount END, q.id, q.amount <= w.rest
    FROM walk w JOIN queue q ON q.merchant_id = w.merchant_id AND q.nth = w.nth + 1
  ), judged AS MATERIALIZED (
    SELECT i.id, NOT i.asks OR w.covered AS covered FROM item i LEFT JOIN walk w ON w.id = i.id
  ), changed AS (
    UPDATE payout p
    SET status = CASE WHEN j.covered THEN 'processing' ELSE 'failed' END::payout_status,
      failure_reason = CASE WHEN NOT j.covered THEN 'INSUFFICIENT_BALANCE' END,
      evidence_source = CASE WHEN NOT j.covered THEN 'service' END,
      settled_at = CASE WHEN NOT j.covered THEN at END
    FROM judged j WHERE p.id = ANY (chosen) AND p.id = j.id AND p.status = 'pending'
    RETURNING p.*, p AS self
  ), reserved AS (
    INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
    SELECT c.merchant_id, 'payout:' || c.id, 'reserve', 'available', 'reserved', c.amount, at
    FROM changed c WHERE c.status = 'processing' AND c.scheduled_at IS NOT NULL ORDER BY c.merchant_id, c.id
  ), asked AS (
    INSERT INTO operator_request (merchant_id, payout_id, provider, kind, correlation_id, amount, phone, fence_until,
      next_check_at, created_at)
    SELECT c.merchant_id, c.id, c.payment_method, 'disburse', gen_random_uuid(), c.amount, c.destination_phone,
      now() + fence_ms * interval '1 millisecond', at + first_check_ms * interval '1 millisecond', at
    FROM changed c WHERE c.status = 'processing' ORDER BY c.id
    RETURNING id, payout_id, correlation_id, created_at
  ), told AS (
    INSERT INTO event (merchant_id, type, data, created_at)
    SELECT c.merchant_id, 'payout_' || c.status, payout_told(c.self, 'pending'), at FROM changed c ORDER BY c.merchant_id, c.id
  )
  SELECT CASE c.status WHEN 'processing' THEN 'begun' ELSE 'short' END, c.id, a.id, a.correlation_id, c.merchant_id, c.amount,
    c.destination_phone, c.request_data, a.created_at
  FROM changed c LEFT JOIN asked a ON a.payout_id = c.id
  ORDER BY c.send_at, c.id;
END $$;
