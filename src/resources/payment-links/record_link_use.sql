-- Counts an attempt to pay by a link when it ends. The slot of a paid attempt is used up; the slot of any
-- other becomes free. The hash of the payer's network address is deleted, unless the attempt held a slot for
-- a minute or more and was not paid, or was withdrawn (see `link_visitor_waits_until`). A late payment counts
-- too, even if it exceeds the limit. `link_use_events` gives the events.
CREATE OR REPLACE FUNCTION record_link_use() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
BEGIN
  UPDATE payment_link l
  SET open_count = l.open_count
      - (OLD.status IN ('pending', 'processing') AND NEW.status NOT IN ('pending', 'processing'))::int,
    usage_count = l.usage_count + (NEW.status = 'success')::int
  WHERE l.id = NEW.payment_link_id;
  DELETE FROM link_slot p WHERE p.transaction_id = NEW.id
    AND (NEW.status = 'success' OR p.created_at > service_now() - interval '1 minute'
      AND NEW.failure_reason IS DISTINCT FROM 'CANCELLED');
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER "transaction_link_use" AFTER UPDATE OF "status" ON "transaction" FOR EACH ROW
  WHEN (NEW.payment_link_id IS NOT NULL AND NEW.status <> OLD.status AND NEW.status
    NOT IN ('processing', 'reversed'))
  EXECUTE FUNCTION record_link_use();
