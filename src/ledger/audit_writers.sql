-- Returns the open transactions that may still commit a ledger entry or an event with an id below the present
-- end: each has its table's lock from before it gets an id until it ends.
CREATE OR REPLACE FUNCTION audit_writers() RETURNS text[] LANGUAGE sql VOLATILE SET search_path = public,
  pg_temp AS $$
  SELECT coalesce(array_agg(DISTINCT l.virtualtransaction), '{}') FROM pg_locks l
  WHERE l.locktype = 'relation' AND l.mode = 'RowExclusiveLock'
    AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
    AND l.relation IN ('ledger_entry'::regclass, 'event'::regclass)
$$;

REVOKE EXECUTE ON FUNCTION audit_writers FROM PUBLIC;
