-- CreateTable
CREATE TABLE "link_place" (
    "transaction_id" BIGINT NOT NULL,
    "merchant_id" INTEGER NOT NULL,
    "payment_link_id" INTEGER NOT NULL,
    "address" BYTEA NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "link_place_pkey" PRIMARY KEY ("transaction_id")
);

-- CreateIndex
CREATE INDEX "link_place_address_created_at_idx" ON "link_place"("address", "created_at");

-- Written by hand: what the schema language cannot say.

ALTER TABLE "link_place" SET UNLOGGED;
SELECT wall_in('link_place');
CREATE INDEX "transaction_open_by_link" ON "transaction" ("payment_link_id", "created_at")
  WHERE "payment_link_id" IS NOT NULL AND "status" IN ('pending', 'processing');

-- How long an open attempt holds a place of its link. It may be paid later as well: late money counts, also beyond the limit.
CREATE FUNCTION link_place_time() RETURNS interval LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT interval '10 minutes' $$;

-- When a place of a link becomes free at the latest, where open attempts hold all places that are left; null where one is free.
-- places: what the limit leaves beside the payments that were made.
CREATE FUNCTION link_places_free_at(link int, places int, at timestamptz) RETURNS timestamptz LANGUAGE sql STABLE
SET search_path = public, pg_temp AS $$
  SELECT t.created_at + link_place_time() FROM transaction t
  WHERE t.payment_link_id = $1 AND t.status IN ('pending', 'processing') AND t.created_at > $3 - link_place_time() AND $2 > 0
  ORDER BY t.created_at DESC OFFSET greatest($2, 1) - 1 LIMIT 1
$$;

-- Whether somebody may begin to pay by a link, and why not. An attempt that is open holds a place, for link_place_time at most.
DROP FUNCTION link_availability;
CREATE FUNCTION link_availability(payment_link, at timestamptz DEFAULT service_now()) RETURNS text LANGUAGE sql STABLE
SET search_path = public, pg_temp AS $$
  SELECT CASE WHEN NOT $1.is_active THEN 'inactive'
    WHEN $1.expires_at <= $2 THEN 'expired'
    WHEN $1.usage_count >= $1.usage_limit THEN 'exhausted'
    WHEN $1.usage_count + $1.open_count >= $1.usage_limit
      AND link_places_free_at($1.id, $1.usage_limit - $1.usage_count, $2) IS NOT NULL THEN 'exhausted'
    ELSE 'open' END
$$;

-- As before, and where open attempts hold all places, that is a wait, not an end (`held`); one address (`visitor`, a keyed hash of
-- it and of the link) has a tenth of the places at a time, 3 at least and 100 at most (`crowded`). The link's lock decides both.
DROP FUNCTION collect_by_link;
CREATE FUNCTION collect_by_link(
  link int, operator provider, phone text, shown bigint, reference text, request jsonb, lifetime_ms bigint, fence_ms bigint,
  first_check_ms bigint, asked_max int[] DEFAULT '{}', asked_ms bigint[] DEFAULT '{}',
  identity uuid DEFAULT gen_random_uuid(), visitor bytea DEFAULT NULL
) RETURNS TABLE (
  outcome text, availability text, merchant_id int, transaction_id bigint, request_id bigint, correlation_id uuid, created_at timestamptz,
  expires_at timestamptz, free_in_ms bigint, is_orphan boolean
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  at timestamptz;
  used payment_link;
  can text;
  made transaction;
  free_at timestamptz;
  waits text;
  known boolean := EXISTS (SELECT FROM operator_orphan o WHERE o.correlation_id = identity);
BEGIN
  -- Before all else, so that nobody waits here who holds anything.
  PERFORM pg_advisory_xact_lock(72707377, hashtext(phone));
  PERFORM pg_advisory_xact_lock_shared(72707373, l.merchant_id) FROM payment_link l WHERE l.id = link;
  SELECT l.* INTO used FROM payment_link l JOIN merchant m ON m.id = l.merchant_id AND m.status = 'active'
  WHERE l.id = link FOR UPDATE OF l;
  IF NOT FOUND THEN RETURN; END IF;
  at := service_now() + (clock_timestamp() - now());
  can := link_availability(used, at);
  IF can = 'exhausted' AND used.usage_count < used.usage_limit THEN
    waits := 'held';
    free_at := link_places_free_at(link, used.usage_limit - used.usage_count, at);
  ELSIF can <> 'open' OR used.amount <> shown THEN
    RETURN QUERY SELECT CASE can WHEN 'open' THEN 'changed' ELSE 'closed' END, can, used.merchant_id, NULL::bigint, NULL::bigint,
      NULL::uuid, NULL::timestamptz, NULL::timestamptz, NULL::bigint, false;
    RETURN;
  ELSE
    waits := 'crowded';
    free_at := (
      SELECT p.created_at + link_place_time() FROM link_place p
      WHERE p.address = visitor AND p.created_at > at - link_place_time()
      ORDER BY p.created_at DESC LIMIT 1
      OFFSET CASE WHEN used.usage_limit IS NULL THEN 100 ELSE least(100, greatest(3, used.usage_limit / 10)) END - 1);
  END IF;
  -- In each window the oldest of as many as it lets pass: one more may come when that one has left it.
  IF free_at IS NULL THEN
    waits := 'asked';
    free_at := (
      SELECT max(oldest.created_at + w.ms * interval '1 millisecond') FROM unnest(asked_max, asked_ms) AS w (most, ms)
      CROSS JOIN LATERAL (
        SELECT t.created_at FROM transaction t
        WHERE t.customer_phone = phone AND t.payment_link_id IS NOT NULL AND t.status NOT IN ('success', 'reversed')
          AND t.created_at > at - w.ms * interval '1 millisecond'
        ORDER BY t.created_at DESC OFFSET w.most - 1 LIMIT 1) oldest);
  END IF;
  IF free_at IS NOT NULL THEN
    RETURN QUERY SELECT waits, can, used.merchant_id, NULL::bigint, NULL::bigint, NULL::uuid, NULL::timestamptz,
      NULL::timestamptz, ceil(extract(epoch FROM free_at - at) * 1000)::bigint, false;
    RETURN;
  END IF;
  UPDATE payment_link l SET open_count = l.open_count + 1 WHERE l.id = link;
  INSERT INTO transaction (merchant_id, transaction_type, payment_method, customer_phone, amount, status, reference, request_data,
    expires_at, created_at, payment_link_id, correlation_id)
  VALUES (used.merchant_id, 'pay', operator, phone, shown, 'pending', $5, $6, at + lifetime_ms * interval '1 millisecond', at,
    link, identity)
  RETURNING * INTO made;
  IF visitor IS NOT NULL THEN
    INSERT INTO link_place (transaction_id, merchant_id, payment_link_id, address, created_at)
    VALUES (made.id, made.merchant_id, link, visitor, at);
  END IF;
  INSERT INTO event (merchant_id, type, data, created_at)
  VALUES (made.merchant_id, 'payment_pending', jsonb_build_object(
    'transaction_id', made.id, 'reference', made.reference, 'amount', made.amount, 'currency', 'XOF',
    'payment_method', made.payment_method, 'customer_phone', made.customer_phone, 'status', made.status), at);
  RETURN QUERY
  WITH asked AS (
    INSERT INTO operator_request (merchant_id, transaction_id, provider, kind, correlation_id, amount, phone, state,
      fence_until, next_check_at, accepted_at, created_at)
    VALUES (made.merchant_id, made.id, operator, 'collect', made.correlation_id, made.amount, phone,
      CASE WHEN known THEN 'accepted' ELSE 'sending' END::operator_request_state, now() + fence_ms * interval '1 millisecond',
      at + CASE WHEN known THEN 0 ELSE first_check_ms END * interval '1 millisecond', CASE WHEN known THEN at END, at)
    RETURNING id, correlation_id
  )
  SELECT 'made', can, made.merchant_id, made.id, a.id, a.correlation_id, made.created_at, made.expires_at, NULL::bigint, known
  FROM asked a;
END $$;

-- As before, and the address of an attempt that ended is forgotten.
CREATE OR REPLACE FUNCTION note_link_use() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  used payment_link;
BEGIN
  UPDATE payment_link l
  SET open_count = l.open_count
      - (OLD.status IN ('pending', 'processing') AND NEW.status NOT IN ('pending', 'processing'))::int,
    usage_count = l.usage_count + (NEW.status = 'success')::int
  WHERE l.id = NEW.payment_link_id RETURNING l.* INTO used;
  DELETE FROM link_place p WHERE p.transaction_id = NEW.id;
  IF NEW.status = 'success' THEN
    INSERT INTO event (merchant_id, type, data, created_at)
    VALUES (NEW.merchant_id, 'payment_link_used', jsonb_build_object(
      'payment_link_id', used.id, 'url_slug', used.url_slug, 'transaction_id', NEW.id, 'reference', NEW.reference,
      'amount', NEW.settled_amount, 'currency', 'XOF', 'usage_count', used.usage_count), service_now());
  END IF;
  RETURN NULL;
END $$;

-- Forgets the addresses of attempts that hold no place any more.
CREATE FUNCTION sweep_link_places() RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  DELETE FROM link_place WHERE created_at <= service_now() - link_place_time()
$$;

REVOKE EXECUTE ON FUNCTION link_place_time, link_places_free_at, link_availability, collect_by_link, sweep_link_places
  FROM PUBLIC;
GRANT EXECUTE ON FUNCTION collect_by_link, sweep_link_places, link_place_time, link_places_free_at TO payments_service;
GRANT EXECUTE ON FUNCTION link_place_time, link_places_free_at TO payments_merchant;
