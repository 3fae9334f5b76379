-- Locks collections, their payment links, and the requests of the collections in `fenced`. The order is the
-- same in every function that settles: transactions and payment links, requests, balances, events.
CREATE OR REPLACE FUNCTION lock_collections(ids bigint[], fenced bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  links int[];
BEGIN
  -- Do not add `AND payment_link_id IS NOT NULL` here: transactions without a link would then stay unlocked.
  links := array_remove(ARRAY(
    SELECT t.payment_link_id FROM transaction t WHERE t.id = ANY (ids) ORDER BY t.id FOR UPDATE), NULL);
  IF links <> '{}' THEN
    PERFORM FROM payment_link l WHERE l.id = ANY (links) ORDER BY l.id FOR NO KEY UPDATE;
  END IF;
  IF fenced <> '{}' THEN
    PERFORM FROM operator_request r WHERE r.transaction_id = ANY (fenced) ORDER BY r.transaction_id
      FOR NO KEY UPDATE;
  END IF;
END $$;
