-- An event of `append_events`, before it has a position.
CREATE TYPE new_event AS (merchant_id integer, type text, data jsonb);

-- The position up to which an endpoint has its deliveries (see docs/design/events.md#deliveries). Until now,
-- deliveries were made when an event got its position. Null: the functions of the previous release registered
-- the endpoint; its deliveries begin with the first event that is newer than the endpoint.
ALTER TABLE "webhook_endpoint" ADD COLUMN "delivered_to" bigint;
UPDATE "webhook_endpoint" w SET delivered_to = coalesce((SELECT h.position FROM "event_log_position" h
  WHERE h.merchant_id = w.merchant_id), 0);
GRANT SELECT ("delivered_to") ON "webhook_endpoint" TO payments_merchant;
