-- Returns the database transactions that are still open and have begun to write to `ledger_entry` or `event`.
-- Such a transaction may hold an id lower than the newest id that readers see, and commit later. It is found
-- by its table lock: it takes the lock before it takes an id, and keeps the lock until it ends.
CREATE OR REPLACE FUNCTION audit_writers() RETURNS text[] LANGUAGE sql VOLATILE SET search_path = public,
  pg_temp AS $$
  SELECT coalesce(array_agg(DISTINCT l.virtualtransaction), '{}') FROM pg_locks l
  WHERE l.locktype = 'relation' AND l.mode = 'RowExclusiveLock'
    AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
    AND l.relation IN ('ledger_entry'::regclass, 'event'::regclass)
$$;
