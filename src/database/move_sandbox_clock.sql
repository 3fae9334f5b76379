-- Moves the clock of a sandbox forward by `ms`, unless `named` is one of the newest `kept` names of moves.
-- Notifies every process. @returns how far the clock is ahead, in ms
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION move_sandbox_clock(ms bigint, named text, kept int) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  ahead bigint;
BEGIN
  INSERT INTO sandbox_clock AS c (offset_ms, moves) VALUES (ms, array_remove(ARRAY[named], NULL))
  ON CONFLICT (singleton) DO UPDATE SET
    offset_ms = c.offset_ms + CASE WHEN c.moves && excluded.moves THEN 0 ELSE excluded.offset_ms END,
    moves = CASE WHEN c.moves && excluded.moves THEN c.moves
      ELSE (c.moves || excluded.moves)[cardinality(c.moves || excluded.moves) - kept + 1:] END
  RETURNING offset_ms INTO ahead;
  PERFORM pg_notify('clock', '');
  RETURN ahead;
END $$;
