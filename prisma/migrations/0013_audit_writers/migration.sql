-- AlterTable
ALTER TABLE "audit_point" DROP COLUMN "next_noted_at",
ADD COLUMN     "next_writers" TEXT[] DEFAULT ARRAY[]::TEXT[];

-- Below: written by hand. What the schema language cannot say.

-- The transactions that may still bring a movement or an event whose id was given out: each holds its table's lock from
-- before it is given one until its end.
CREATE FUNCTION audit_writers() RETURNS text[] LANGUAGE sql VOLATILE SET search_path = public, pg_temp AS $$
  SELECT coalesce(array_agg(DISTINCT l.virtualtransaction), '{}') FROM pg_locks l
  WHERE l.locktype = 'relation' AND l.mode = 'RowExclusiveLock'
    AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
    AND l.relation IN ('movement'::regclass, 'event'::regclass)
$$;
REVOKE EXECUTE ON FUNCTION audit_writers FROM PUBLIC;

-- Of the point that was noted before this: who wrote then and has not ended is among those who write now.
UPDATE audit_point SET next_writers = audit_writers();

-- Notes that the books were just proven, in the transaction and snapshot that proved them. The point moves on to where the
-- end was once an earlier note knew that whoever wrote before that has ended: then this snapshot has seen all of it, and
-- nothing appears before it any more, however long a writer or a proof takes.
CREATE OR REPLACE FUNCTION note_audit(whole boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  point audit_point;
  is_first boolean;
  end_movement bigint := coalesce(pg_sequence_last_value('movement_id_seq'), 0);
  end_event bigint := coalesce(pg_sequence_last_value('event_id_seq'), 0);
  -- Asked after the ends: who holds an id below them is among these, or has ended.
  writers text[] := audit_writers();
  summed_to bigint;
BEGIN
  INSERT INTO audit_point (next_movement_id, next_event_id, next_writers) VALUES (end_movement, end_event, writers)
  ON CONFLICT DO NOTHING;
  is_first := FOUND;
  SELECT * INTO point FROM audit_point FOR UPDATE;
  IF whole THEN
    summed_to := 0;
    DELETE FROM audit_proven;
    UPDATE audit_point SET whole_proven_at = now();
  ELSE
    summed_to := point.movement_id;
  END IF;
  IF NOT is_first AND point.next_writers = '{}' THEN
    UPDATE audit_point
    SET movement_id = next_movement_id, event_id = next_event_id, event_id_before = event_id,
      next_movement_id = end_movement, next_event_id = end_event, next_writers = writers
    RETURNING * INTO point;
  ELSIF NOT is_first THEN
    UPDATE audit_point
    SET next_writers = ARRAY(SELECT unnest(next_writers) INTERSECT SELECT unnest(writers));
  END IF;
  INSERT INTO audit_proven AS p (merchant_id, available, reserved, position)
  SELECT merchant_id, coalesce(m.available, 0), coalesce(m.reserved, 0), coalesce(h.position, 0)
  FROM (
    SELECT merchant_id,
      sum(CASE 'available'::ledger_account WHEN credit THEN amount WHEN debit THEN -amount ELSE 0 END) AS available,
      sum(CASE 'reserved'::ledger_account WHEN credit THEN amount WHEN debit THEN -amount ELSE 0 END) AS reserved
    FROM movement WHERE id > summed_to AND id <= point.movement_id GROUP BY merchant_id
  ) m FULL JOIN (
    SELECT s.* FROM stream_head s LEFT JOIN audit_proven a USING (merchant_id)
    WHERE s.position IS DISTINCT FROM a.position
  ) h USING (merchant_id)
  ON CONFLICT (merchant_id) DO UPDATE
  SET available = p.available + excluded.available, reserved = p.reserved + excluded.reserved,
    position = greatest(p.position, excluded.position);
END $$;
