-- Ends a merchant's access. @returns false where there is no such merchant
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION deactivate_merchant(merchant int) RETURNS boolean LANGUAGE sql
  SET search_path = public, pg_temp AS $$
  WITH ended AS (
    UPDATE merchant SET status = 'inactive', deactivated_at = coalesce(deactivated_at, service_now())
    WHERE id = $1 RETURNING id
  ) SELECT EXISTS (SELECT FROM ended)
$$;
