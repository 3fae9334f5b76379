-- Gives an inactive merchant its access back; an active one stays as it is. @returns false where there is no
-- such merchant
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION activate_merchant(merchant int) RETURNS boolean LANGUAGE sql
  SET search_path = public, pg_temp AS $$
  WITH begun AS (
    UPDATE merchant SET status = 'active', deactivated_at = NULL WHERE id = $1 RETURNING id
  ) SELECT EXISTS (SELECT FROM begun)
$$;
