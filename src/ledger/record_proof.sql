-- Records that the rows up to these ids (null: to the end) were just proven, in the transaction and snapshot
-- of the proof. After a proof to the end, the proven point moves to the end of the books that an earlier call
-- noted (`next_...`), once all transactions that were writing at that time (`next_writers`) have ended: this
-- snapshot has then seen all rows up to there, and no later commit can add a row before that end.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION record_proof(upto_entry bigint, upto_event bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  point audit_point;
  is_first boolean;
  is_end boolean := upto_entry IS NULL;
  end_entry bigint := coalesce(pg_sequence_last_value('ledger_entry_id_seq'), 0);
  end_event bigint := coalesce(pg_sequence_last_value('event_id_seq'), 0);
  -- Read after the two ends above: a transaction that took an id up to them is in this list, or has ended.
  writers text[] := audit_writers();
  summed_to bigint;
BEGIN
  INSERT INTO audit_point (next_ledger_entry_id, next_event_id, next_writers)
    VALUES (end_entry, end_event, writers)
  ON CONFLICT DO NOTHING;
  is_first := FOUND;
  SELECT * INTO point FROM audit_point FOR UPDATE;
  summed_to := point.ledger_entry_id;
  IF NOT is_first AND point.next_writers <> '{}' THEN
    UPDATE audit_point SET next_writers = ARRAY(SELECT unnest(next_writers) INTERSECT SELECT unnest(writers));
  ELSIF NOT is_first AND (is_end OR upto_entry = point.next_ledger_entry_id
    AND upto_event = point.next_event_id) THEN
    UPDATE audit_point
    SET ledger_entry_id = next_ledger_entry_id, event_id = next_event_id,
      next_ledger_entry_id = end_entry, next_event_id = end_event, next_writers = writers
    RETURNING * INTO point;
  ELSIF NOT is_first THEN
    UPDATE audit_point SET ledger_entry_id = upto_entry, event_id = upto_event RETURNING * INTO point;
  END IF;
  IF is_end THEN UPDATE audit_point SET proven_at = now(); END IF;
  INSERT INTO audit_proven AS p (merchant_id, available, reserved, receivable, position)
  SELECT merchant_id, coalesce(m.available, 0), coalesce(m.reserved, 0), coalesce(m.receivable, 0),
    coalesce(h.position, 0)
  FROM (
    SELECT merchant_id,
      sum(CASE 'available'::ledger_account WHEN credit THEN amount WHEN debit THEN -amount
        ELSE 0 END) AS available,
      sum(CASE 'reserved'::ledger_account WHEN credit THEN amount WHEN debit THEN -amount
        ELSE 0 END) AS reserved,
      sum(CASE 'suspense'::ledger_account WHEN debit THEN amount WHEN credit THEN -amount
        ELSE 0 END) AS receivable
    FROM ledger_entry WHERE id > summed_to AND id <= point.ledger_entry_id GROUP BY merchant_id
  ) m FULL JOIN (
    SELECT s.* FROM event_log_position s LEFT JOIN audit_proven a USING (merchant_id)
    WHERE is_end AND s.position IS DISTINCT FROM a.position
  ) h USING (merchant_id)
  ON CONFLICT (merchant_id) DO UPDATE
  SET available = p.available + excluded.available, reserved = p.reserved + excluded.reserved,
    receivable = p.receivable + excluded.receivable,
    position = greatest(p.position, excluded.position);
END $$;
