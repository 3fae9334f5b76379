-- How far the next proof of what is new reaches: to the end (nulls), or, where more than `most` rows wait,
-- that far. A row that is written late, below an id that was seen, is never stepped over: steps end where
-- every writer is known to have ended (`note_proof`); until then they are empty.
CREATE OR REPLACE FUNCTION audit_reach(most bigint, OUT movement_id bigint, OUT event_id bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  point audit_point := (SELECT p FROM audit_point p);
BEGIN
  IF point.singleton AND greatest(
      coalesce(pg_sequence_last_value('movement_id_seq'), 0) - point.movement_id,
      coalesce(pg_sequence_last_value('event_id_seq'), 0) - point.event_id) > most THEN
    movement_id := CASE WHEN point.next_writers = '{}' THEN least(point.next_movement_id,
      point.movement_id + most)
      ELSE point.movement_id END;
    event_id := CASE WHEN point.next_writers = '{}' THEN least(point.next_event_id, point.event_id + most)
      ELSE point.event_id END;
  END IF;
END $$;

REVOKE EXECUTE ON FUNCTION audit_reach FROM PUBLIC;
GRANT EXECUTE ON FUNCTION audit_reach TO payments_service;
