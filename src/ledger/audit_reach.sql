-- Returns how far the next proof of new rows reaches: to the end (nulls), or, where more than `most` rows
-- wait, to these ids. A transaction may commit a row late, with an id below ids that were proven already. So
-- that no proof misses such a row, the part ends at ids up to which all writers are known to have ended
-- (`record_proof`); until then the part is empty.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION audit_reach(most bigint, OUT ledger_entry_id bigint, OUT event_id bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  point audit_point := (SELECT p FROM audit_point p);
BEGIN
  IF point.singleton AND greatest(
      coalesce(pg_sequence_last_value('ledger_entry_id_seq'), 0) - point.ledger_entry_id,
      coalesce(pg_sequence_last_value('event_id_seq'), 0) - point.event_id) > most THEN
    ledger_entry_id := CASE WHEN point.next_writers = '{}' THEN least(point.next_ledger_entry_id,
      point.ledger_entry_id + most)
      ELSE point.ledger_entry_id END;
    event_id := CASE WHEN point.next_writers = '{}' THEN least(point.next_event_id, point.event_id + most)
      ELSE point.event_id END;
  END IF;
END $$;
