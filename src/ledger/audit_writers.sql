-- The transactions that may still bring a movement or an event whose id was given out: each holds its table's
-- lock from before it is given one until its end.
CREATE OR REPLACE FUNCTION audit_writers() RETURNS text[] LANGUAGE sql VOLATILE SET search_path = public,
  pg_temp AS $$
  SELECT coalesce(array_agg(DISTINCT l.virtualtransaction), '{}') FROM pg_locks l
  WHERE l.locktype = 'relation' AND l.mode = 'RowExclusiveLock'
    AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
    AND l.relation IN ('ledger_entry'::regclass, 'event'::regclass)
$$;

REVOKE EXECUTE ON FUNCTION audit_writers FROM PUBLIC;
