-- Cancels the unsent recipients of a batch of a merchant that is not active. @returns false where nothing
-- changed
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION cancel_batch_of_inactive(merchant int, batch int) RETURNS boolean LANGUAGE sql
  SET search_path = public, pg_temp AS $$
  SELECT coalesce((
    SELECT c.moved FROM merchant m CROSS JOIN LATERAL cancel_batch(m.id, $2) AS c
    WHERE m.id = $1 AND m.status <> 'active'), false)
$$;
