-- AlterTable
ALTER TABLE "transaction" ADD COLUMN     "payment_link_id" INTEGER;

-- CreateTable
CREATE TABLE "payment_link" (
    "id" SERIAL NOT NULL,
    "merchant_id" INTEGER NOT NULL,
    "title" TEXT NOT NULL,
    "description" TEXT,
    "amount" BIGINT,
    "url_slug" TEXT NOT NULL,
    "usage_limit" INTEGER,
    "usage_count" INTEGER NOT NULL DEFAULT 0,
    "open_count" INTEGER NOT NULL DEFAULT 0,
    "is_active" BOOLEAN NOT NULL DEFAULT true,
    "expires_at" TIMESTAMPTZ(3),
    "made_for" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "payment_link_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE UNIQUE INDEX "payment_link_url_slug_key" ON "payment_link"("url_slug");

-- CreateIndex
CREATE INDEX "payment_link_merchant_id_id_idx" ON "payment_link"("merchant_id", "id");

-- CreateIndex
CREATE UNIQUE INDEX "payment_link_made_for_merchant_id_key" ON "payment_link"("made_for", "merchant_id");

-- CreateIndex
CREATE UNIQUE INDEX "payment_link_id_merchant_id_key" ON "payment_link"("id", "merchant_id");

-- AddForeignKey
ALTER TABLE "transaction" ADD CONSTRAINT "transaction_payment_link_id_merchant_id_fkey" FOREIGN KEY ("payment_link_id", "merchant_id") REFERENCES "payment_link"("id", "merchant_id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "payment_link" ADD CONSTRAINT "payment_link_merchant_id_fkey" FOREIGN KEY ("merchant_id") REFERENCES "merchant"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- Below: written by hand. What the schema language cannot say.

ALTER TABLE "payment_link"
  ADD CONSTRAINT "payment_link_title" CHECK (char_length("title") BETWEEN 1 AND 200),
  ADD CONSTRAINT "payment_link_description" CHECK (char_length("description") BETWEEN 1 AND 1000),
  ADD CONSTRAINT "payment_link_amount" CHECK ("amount" BETWEEN 100 AND 1000000),
  ADD CONSTRAINT "payment_link_url_slug" CHECK ("url_slug" ~ '^[a-z0-9](-?[a-z0-9])*$' AND length("url_slug") BETWEEN 3 AND 64),
  ADD CONSTRAINT "payment_link_usage_limit" CHECK ("usage_limit" >= 1),
  ADD CONSTRAINT "payment_link_counts" CHECK ("usage_count" >= 0 AND "open_count" >= 0);
CREATE INDEX "transaction_payment_link" ON "transaction" ("payment_link_id", "id") WHERE "payment_link_id" IS NOT NULL;
ALTER TABLE "payment_link" SET (fillfactor = 70);

SELECT wall_in('payment_link');
GRANT SELECT ON "payment_link" TO payments_service, payments_merchant;
GRANT INSERT ("merchant_id", "title", "description", "amount", "url_slug", "usage_limit", "expires_at", "made_for", "created_at",
    "updated_at"),
  UPDATE ("title", "description", "amount", "usage_limit", "is_active", "expires_at", "updated_at")
  ON "payment_link" TO payments_merchant;
GRANT USAGE ON SEQUENCE "payment_link_id_seq" TO payments_merchant;

-- Whether somebody may begin to pay by a link, and why not. An attempt that is open holds a place.
CREATE FUNCTION link_availability(payment_link) RETURNS text LANGUAGE sql STABLE SET search_path = public, pg_temp AS $$
  SELECT CASE WHEN NOT $1.is_active THEN 'inactive'
    WHEN $1.expires_at <= service_now() THEN 'expired'
    WHEN $1.usage_count + $1.open_count >= $1.usage_limit THEN 'exhausted'
    ELSE 'open' END
$$;

-- Records an attempt to pay by a link, and the intent to ask the operator: as `collect_many`, for whom the link stands in for an
-- API key. It holds a place of the link, or is not made. The amount is that of the link at this moment, and frozen from then on:
-- whoever was shown another one hears so (`changed`).
CREATE FUNCTION collect_by_link(
  link int, operator provider, phone text, shown bigint, reference text, request jsonb, lifetime_ms bigint, fence_ms bigint,
  first_check_ms bigint
) RETURNS TABLE (
  outcome text, availability text, merchant_id int, transaction_id bigint, request_id bigint, correlation_id uuid, created_at timestamptz, expires_at timestamptz
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  at timestamptz;
  used payment_link;
  can text;
  made transaction;
BEGIN
  PERFORM pg_advisory_xact_lock_shared(72707373, l.merchant_id) FROM payment_link l WHERE l.id = link;
  SELECT l.* INTO used FROM payment_link l JOIN merchant m ON m.id = l.merchant_id AND m.status = 'active'
  WHERE l.id = link FOR UPDATE OF l;
  IF NOT FOUND THEN RETURN; END IF;
  at := service_now() + (clock_timestamp() - now());
  can := link_availability(used);
  IF can <> 'open' OR used.amount <> shown THEN
    RETURN QUERY SELECT CASE can WHEN 'open' THEN 'changed' ELSE 'closed' END, can, used.merchant_id, NULL::bigint, NULL::bigint,
      NULL::uuid, NULL::timestamptz, NULL::timestamptz;
    RETURN;
  END IF;
  UPDATE payment_link l SET open_count = l.open_count + 1 WHERE l.id = link;
  INSERT INTO transaction (merchant_id, transaction_type, payment_method, customer_phone, amount, status, reference, request_data,
    expires_at, created_at, payment_link_id)
  VALUES (used.merchant_id, 'pay', operator, phone, shown, 'pending', $5, $6, at + lifetime_ms * interval '1 millisecond', at, link)
  RETURNING * INTO made;
  INSERT INTO event (merchant_id, type, data, created_at)
  VALUES (made.merchant_id, 'payment_pending', jsonb_build_object(
    'transaction_id', made.id, 'reference', made.reference, 'amount', made.amount, 'currency', 'XOF',
    'payment_method', made.payment_method, 'customer_phone', made.customer_phone, 'status', made.status), at);
  RETURN QUERY
  WITH asked AS (
    INSERT INTO operator_request (merchant_id, transaction_id, provider, kind, correlation_id, amount, phone, fence_until,
      next_check_at, created_at)
    VALUES (made.merchant_id, made.id, operator, 'collect', gen_random_uuid(), made.amount, phone,
      now() + fence_ms * interval '1 millisecond', at + first_check_ms * interval '1 millisecond', at)
    RETURNING id, correlation_id
  )
  SELECT 'made', can, made.merchant_id, made.id, a.id, a.correlation_id, made.created_at, made.expires_at
  FROM asked a;
END $$;

-- An attempt that ended gives its place back, or has used it; late money counts as well, also beyond the limit: it was paid.
CREATE FUNCTION note_link_use() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  used payment_link;
BEGIN
  UPDATE payment_link l
  SET open_count = l.open_count
      - (OLD.status IN ('pending', 'processing') AND NEW.status NOT IN ('pending', 'processing'))::int,
    usage_count = l.usage_count + (NEW.status = 'success')::int
  WHERE l.id = NEW.payment_link_id RETURNING l.* INTO used;
  IF NEW.status = 'success' THEN
    INSERT INTO event (merchant_id, type, data, created_at)
    VALUES (NEW.merchant_id, 'payment_link_used', jsonb_build_object(
      'payment_link_id', used.id, 'url_slug', used.url_slug, 'transaction_id', NEW.id, 'reference', NEW.reference,
      'amount', NEW.settled_amount, 'currency', 'XOF', 'usage_count', used.usage_count), service_now());
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER "transaction_link_use" AFTER UPDATE OF "status" ON "transaction" FOR EACH ROW
  WHEN (NEW.payment_link_id IS NOT NULL AND NEW.status <> OLD.status AND NEW.status NOT IN ('processing', 'reversed'))
  EXECUTE FUNCTION note_link_use();

-- What a transaction is about never changes, and so by which link it was paid.
DROP TRIGGER "transaction_guard" ON "transaction";
CREATE TRIGGER "transaction_guard" BEFORE UPDATE OF id, merchant_id, transaction_type, payment_method, customer_phone, amount,
  reference, refund_of_id, payment_link_id ON "transaction" FOR EACH ROW WHEN (
  (OLD.id, OLD.merchant_id, OLD.transaction_type, OLD.payment_method, OLD.customer_phone, OLD.amount, OLD.reference,
    OLD.refund_of_id, OLD.payment_link_id)
  IS DISTINCT FROM
  (NEW.id, NEW.merchant_id, NEW.transaction_type, NEW.payment_method, NEW.customer_phone, NEW.amount, NEW.reference,
    NEW.refund_of_id, NEW.payment_link_id)
) EXECUTE FUNCTION guard_transaction();

REVOKE EXECUTE ON FUNCTION link_availability, collect_by_link, note_link_use FROM PUBLIC;
GRANT EXECUTE ON FUNCTION collect_by_link TO payments_service;
