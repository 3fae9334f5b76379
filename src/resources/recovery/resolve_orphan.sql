-- Records how a person resolved an orphan. @returns false where no such orphan is open
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION resolve_orphan(orphan bigint, resolution text) RETURNS boolean LANGUAGE sql
  SET search_path = public, pg_temp AS $$
  WITH resolved AS (
    UPDATE operator_orphan SET resolved_at = now(), resolution = $2 WHERE id = $1 AND resolved_at IS NULL
    RETURNING id
  ) SELECT EXISTS (SELECT FROM resolved)
$$;
