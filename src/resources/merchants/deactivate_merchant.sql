-- Ends a merchant's access. @returns false where there is no such merchant
CREATE OR REPLACE FUNCTION deactivate_merchant(merchant int) RETURNS boolean LANGUAGE sql
  SET search_path = public, pg_temp AS $$
  WITH ended AS (
    UPDATE merchant SET status = 'inactive', deactivated_at = coalesce(deactivated_at, service_now())
    WHERE id = $1 RETURNING id
  ) SELECT EXISTS (SELECT FROM ended)
$$;

REVOKE EXECUTE ON FUNCTION deactivate_merchant FROM PUBLIC;
GRANT EXECUTE ON FUNCTION deactivate_merchant TO payments_service;
