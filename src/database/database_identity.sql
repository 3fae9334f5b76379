-- Returns the identity of this database: facts that change when it is restored. They are the server's system
-- identifier (changes with another cluster), its timeline (changes with point-in-time recovery or promotion),
-- and the database's oid (changes when the database is created anew or copied).
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION database_identity(
  OUT system_identifier text,
  OUT timeline int,
  OUT database_oid text
)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  SELECT c.system_identifier::text INTO system_identifier FROM pg_control_system() c;
  BEGIN
    timeline := ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int;
  EXCEPTION WHEN OTHERS THEN
    -- A hosted server may not offer the names of its log files; then the control file is read, which is out
    -- of date until the next checkpoint.
    SELECT c.timeline_id INTO timeline FROM pg_control_checkpoint() c;
  END;
  SELECT d.oid::text INTO database_oid FROM pg_database d WHERE d.datname = current_database();
END $$;
