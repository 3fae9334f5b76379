-- Stores callbacks, each once, and makes their requests due; only a query decides what a callback means. A
-- callback names its request by the request's id or by its correlation id; the request must be one of that
-- operator. A callback with a slot (`has_slots`) also claims its request, as `claim_requests` does: the
-- caller asks about it at once, and if the caller dies, the request is due again after `fence_ms`. Without
-- `waits` a callback is left out (`is_recorded` is false) while another session has locked the row of its
-- request: a caller that waits for one row must hold no other, otherwise two callers could deadlock.
-- `is_new`: this call stored the callback. `request_id`: null if the callback names no request of this
-- service. The columns of the request are null if it was not claimed. The rows come in the order of the
-- callbacks.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION record_callbacks(
  providers provider[],
  dedupe_keys text[],
  bodies text[],
  named_ids bigint[],
  named_correlations uuid[],
  outcomes text[],
  has_slots boolean[],
  pause_ms bigint,
  fence_ms bigint,
  waits boolean
) RETURNS TABLE (
  is_recorded boolean,
  is_new boolean,
  request_id bigint,
  id bigint,
  merchant_id int,
  subject text,
  subject_id bigint,
  provider provider,
  kind operator_request_kind,
  amount bigint,
  phone text,
  handle jsonb,
  state operator_request_state,
  attempt smallint,
  claimed_at timestamptz,
  check_count int,
  age_ms double precision,
  left_ms double precision,
  since_over_ms double precision,
  since_settled_ms double precision,
  since_sent_ms double precision,
  request jsonb,
  status text,
  claimed text,
  since_notified_ms double precision,
  rejected_reason text,
  cancel_requested boolean,
  is_approved boolean
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  -- By callback: its request and the request's merchant.
  named bigint[];
  merchants int[];
  locked bigint[];
  -- The numbers of the new callbacks, and of those that claimed their request.
  fresh bigint[];
  claims bigint[];
BEGIN
  -- `LATERAL` and `LIMIT` make the planner use the index, even if the table was empty at planning time.
  SELECT array_agg(r.id ORDER BY i.n), array_agg(r.merchant_id ORDER BY i.n) INTO named, merchants
  FROM unnest(providers, named_ids, named_correlations) WITH ORDINALITY AS i (provider, id, correlation, n)
  LEFT JOIN LATERAL (
    SELECT r.id, r.merchant_id FROM operator_request r
    WHERE r.id = coalesce(i.id, (SELECT c.id FROM operator_request c WHERE c.correlation_id = i.correlation))
      AND r.provider = i.provider AND r.correlation_id = coalesce(i.correlation, r.correlation_id) LIMIT 1
  ) r ON true;

  IF waits THEN
    locked := ARRAY(SELECT l.id FROM (SELECT DISTINCT unnest(named) AS id) i JOIN LATERAL (
      SELECT r.id FROM operator_request r WHERE r.id = i.id LIMIT 1 FOR NO KEY UPDATE) l ON true);
  ELSE
    locked := ARRAY(SELECT l.id FROM (SELECT DISTINCT unnest(named) AS id) i JOIN LATERAL (
      SELECT r.id FROM operator_request r WHERE r.id = i.id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED) l ON true);
  END IF;

  WITH item AS MATERIALIZED (
    SELECT * FROM unnest(merchants, named, providers, dedupe_keys, bodies)
      WITH ORDINALITY AS i (merchant_id, request_id, provider, dedupe_key, body, n)
    WHERE i.request_id IS NULL OR i.request_id = ANY (locked)
  ), stored AS (
    INSERT INTO operator_callback AS c (merchant_id, request_id, provider, dedupe_key, body, received_at)
    -- All callers store in the same order: two that store the same callbacks cannot deadlock. The time is cut
    -- to milliseconds, not rounded: it is not after that of the question that the callback causes.
    SELECT i.merchant_id, i.request_id, i.provider, i.dedupe_key, i.body,
      date_trunc('milliseconds', service_now())
    FROM item i
    ORDER BY i.provider, i.dedupe_key, i.n
    ON CONFLICT (provider, dedupe_key) DO NOTHING RETURNING c.provider, c.dedupe_key
  )
  SELECT array_agg(first.n) INTO fresh FROM (
    SELECT min(i.n) AS n FROM stored s JOIN item i USING (provider, dedupe_key) GROUP BY provider, dedupe_key
  ) first;

  WITH alert AS (
    SELECT DISTINCT ON (r.id) r.id, i.n, i.outcome,
      i.has_slot AND (r.query_after IS NULL OR r.query_after <= now()) AS claims
    FROM unnest(named, outcomes, has_slots) WITH ORDINALITY AS i (request_id, outcome, has_slot, n)
    JOIN LATERAL (
      SELECT r.id, r.state, r.query_after FROM operator_request r WHERE r.id = i.request_id LIMIT 1) r ON true
    -- A settled request becomes due only where the callback claims another outcome.
    WHERE i.n = ANY (fresh) AND (r.state <> 'settled' OR i.outcome <> 'settled')
    ORDER BY r.id, i.n DESC
  ), due AS (
    UPDATE operator_request r
    SET handle = r.handle || jsonb_build_object('claimed', a.outcome, 'alertAt', service_now()),
      next_check_at = CASE WHEN a.claims THEN service_now() + fence_ms * interval '1 millisecond'
        ELSE date_trunc('milliseconds', service_now()) END,
      query_after = CASE WHEN a.claims THEN now() + pause_ms * interval '1 millisecond' ELSE query_after END,
      check_count = check_count + a.claims::int
    FROM alert a WHERE r.id = ANY (locked) AND r.id = a.id RETURNING a.n, a.claims
  )
  SELECT array_agg(d.n) FILTER (WHERE d.claims) INTO claims FROM due d;

  RETURN QUERY
  SELECT i.request_id IS NULL OR i.request_id = ANY (locked), i.n = ANY (coalesce(fresh, '{}')), i.request_id,
    c.*
  FROM unnest(named) WITH ORDINALITY AS i (request_id, n)
  LEFT JOIN claimed_requests(ARRAY(SELECT named[c] FROM unnest(claims) AS c), fence_ms) AS c
    ON c.id = i.request_id AND i.n = ANY (claims)
  ORDER BY i.n;
END $$;
