-- Returns the installation of this database, and how the identity of the database differs from the identity
-- at the start of its epoch (`moved`; null: not at all). A database that no service has opened yet records
-- its own identity now.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION open_installation(
  OUT id uuid,
  OUT epoch int,
  OUT system_identifier text,
  OUT timeline int,
  OUT database_oid text,
  OUT restored_at timestamptz,
  OUT moved text
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  here record;
BEGIN
  here := database_identity();
  IF NOT EXISTS (SELECT FROM installation) THEN
    INSERT INTO installation (system_identifier, timeline, database_oid)
    VALUES (here.system_identifier, here.timeline, here.database_oid) ON CONFLICT DO NOTHING;
  END IF;
  SELECT i.id, i.epoch, i.restored_at, concat_ws('; ',
    CASE WHEN i.system_identifier <> here.system_identifier
      THEN format('it is on server %s and was on server %s', here.system_identifier, i.system_identifier) END,
    CASE WHEN i.system_identifier = here.system_identifier AND i.timeline <> here.timeline
      THEN format('its server is on timeline %s and was on timeline %s', here.timeline, i.timeline) END,
    CASE WHEN i.system_identifier = here.system_identifier AND i.database_oid <> here.database_oid
      THEN format('its oid is %s and was %s', here.database_oid, i.database_oid) END)
  INTO id, epoch, restored_at, moved FROM installation i;
  moved := nullif(moved, '');
  system_identifier := here.system_identifier;
  timeline := here.timeline;
  database_oid := here.database_oid;
END $$;
