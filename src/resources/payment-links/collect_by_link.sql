-- Records an attempt to pay by a link, and the request to the operator, as `collect_many` does for a caller
-- with an API key. An attempt is recorded only if the link has a free slot. The attempt takes the amount of
-- the link at this moment and keeps it. If the payer was shown another amount, the outcome is `changed`.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION collect_by_link(
  link int,
  operator provider,
  phone text,
  shown bigint,
  reference text,
  request jsonb,
  lifetime_ms bigint,
  fence_ms bigint,
  first_check_ms bigint,
  asked_max int[] DEFAULT '{}',
  asked_ms bigint[] DEFAULT '{}',
  identity uuid DEFAULT gen_random_uuid(),
  visitor bytea DEFAULT NULL
) RETURNS TABLE (
  outcome text,
  availability text,
  merchant_id int,
  transaction_id bigint,
  request_id bigint,
  correlation_id uuid,
  created_at timestamptz,
  expires_at timestamptz,
  free_in_ms bigint,
  is_orphan boolean
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
  SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  at timestamptz;
  used payment_link;
  can text;
  made transaction;
  free_at timestamptz;
  waits text;
  -- True: an operator executed this payment before a restore, and is only asked about it. False: an operator
  -- executed another payment under this identity.
  known boolean := (SELECT bool_and(is_orphan_of(o, 'collect', operator, shown, phone))
    FROM operator_orphan o WHERE o.correlation_id = identity);
BEGIN
  -- Take these locks first: a transaction that waits here must not hold locks for which others wait.
  PERFORM pg_advisory_xact_lock(72707378, hashtext(phone));
  PERFORM pg_advisory_xact_lock_shared(72707373, l.merchant_id) FROM payment_link l WHERE l.id = link;
  SELECT l.* INTO used FROM payment_link l JOIN merchant m ON m.id = l.merchant_id AND m.status = 'active'
  WHERE l.id = link FOR UPDATE OF l;
  IF NOT FOUND THEN RETURN; END IF;
  at := service_now() + (clock_timestamp() - now());
  can := link_availability(used, at);
  IF can = 'exhausted' AND used.usage_count < used.usage_limit THEN
    waits := 'held';
    free_at := link_slots_free_at(link, used.usage_limit - used.usage_count, at);
  ELSIF can <> 'open' OR used.amount <> shown THEN
    RETURN QUERY SELECT CASE can WHEN 'open' THEN 'changed' ELSE 'closed' END, can, used.merchant_id,
      NULL::bigint, NULL::bigint, NULL::uuid, NULL::timestamptz, NULL::timestamptz, NULL::bigint, false;
    RETURN;
  ELSE
    waits := 'crowded';
    free_at := link_visitor_waits_until(used, visitor, phone, at);
  END IF;
  -- Each window allows `most` unpaid attempts. Where a window is full, the next attempt is allowed when the
  -- oldest of the `most` newest attempts leaves the window.
  IF free_at IS NULL THEN
    waits := 'asked';
    free_at := (
      SELECT max(oldest.created_at + w.ms * interval '1 millisecond')
        FROM unnest(asked_max, asked_ms) AS w (most, ms)
      CROSS JOIN LATERAL (
        SELECT t.created_at FROM transaction t
        WHERE t.customer_phone = phone AND t.payment_link_id IS NOT NULL AND t.status
          NOT IN ('success', 'reversed')
          AND t.created_at > at - w.ms * interval '1 millisecond'
        ORDER BY t.created_at DESC OFFSET w.most - 1 LIMIT 1) oldest);
  END IF;
  IF free_at IS NOT NULL THEN
    RETURN QUERY SELECT waits, can, used.merchant_id, NULL::bigint, NULL::bigint, NULL::uuid,
      NULL::timestamptz, NULL::timestamptz, ceil(extract(epoch FROM free_at - at) * 1000)::bigint, false;
    RETURN;
  END IF;
  IF NOT known THEN
    RETURN QUERY SELECT 'differs', can, used.merchant_id, NULL::bigint, NULL::bigint, NULL::uuid,
      NULL::timestamptz, NULL::timestamptz, NULL::bigint, false;
    RETURN;
  END IF;
  UPDATE payment_link l SET open_count = l.open_count + 1 WHERE l.id = link;
  INSERT INTO transaction (merchant_id, transaction_type, payment_method, customer_phone, amount, status,
    reference, request_data, expires_at, created_at, payment_link_id, correlation_id)
  VALUES (used.merchant_id, 'pay', operator, phone, shown, 'pending', $5, $6,
    at + lifetime_ms * interval '1 millisecond', at, link, identity)
  RETURNING * INTO made;
  IF visitor IS NOT NULL THEN
    INSERT INTO link_slot (transaction_id, merchant_id, payment_link_id, address, created_at)
    VALUES (made.id, made.merchant_id, link, visitor, at);
  END IF;
  RETURN QUERY
  WITH asked AS (
    INSERT INTO operator_request (merchant_id, transaction_id, provider, kind, correlation_id, amount, phone,
      state, fence_until, next_check_at, accepted_at, created_at)
    VALUES (made.merchant_id, made.id, operator, 'collect', made.correlation_id, made.amount, phone,
      CASE WHEN known THEN 'accepted' ELSE 'sending' END::operator_request_state,
      now() + fence_ms * interval '1 millisecond', at + CASE WHEN known THEN 0
        ELSE first_check_ms END * interval '1 millisecond', CASE WHEN known THEN at END, at)
    RETURNING id, correlation_id
  )
  SELECT 'made', can, made.merchant_id, made.id, a.id, a.correlation_id, made.created_at, made.expires_at,
    NULL::bigint, known IS NOT NULL
  FROM asked a;
  PERFORM append_events(ARRAY[(made.merchant_id, 'payment_pending', jsonb_build_object(
    'transaction_id', made.id, 'reference', made.reference, 'amount', made.amount, 'currency', 'XOF',
    'payment_method', made.payment_method, 'customer_phone', made.customer_phone, 'status', made.status)
    )::new_event], at);
END $$;
