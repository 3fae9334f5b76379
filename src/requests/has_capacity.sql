-- Whether the request of a recipient may be sent once more: fewer than `batch_max` other requests of its
-- batch are under way. The function locks the batch, so no other caller can take the same capacity before the
-- calling statement commits.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION has_capacity(
  request bigint,
  recipient bigint,
  fence_ms bigint,
  call_ms bigint,
  batch_max int
) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  own_batch int := (SELECT r.batch_id FROM batch_recipient r WHERE r.id = recipient);
BEGIN
  PERFORM FROM batch b WHERE b.id = own_batch FOR UPDATE;
  RETURN batch_max > (SELECT count(*) FROM recipient_calls(fence_ms, call_ms, ARRAY[request]) AS c
    WHERE c.batch_id = own_batch);
END $$;
