-- Keeps a later question due when the answer to an earlier question settles the request. A process that asks
-- an operator leaves its question due until it has recorded the answer. Without this trigger, an earlier
-- answer that settles the request would clear a question that is still open, and the later answer (for
-- instance that the operator took the money back) would be lost if its process died. The evidence of an
-- answer holds the number of its question (`check_count`).
CREATE OR REPLACE FUNCTION keep_question() RETURNS trigger LANGUAGE plpgsql SET search_path = public,
  pg_temp AS $$
BEGIN
  NEW.next_check_at := OLD.next_check_at;
  RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER operator_request_keep_question BEFORE UPDATE OF state ON operator_request
  FOR EACH ROW
  WHEN (NEW.state = 'settled' AND OLD.state <> 'settled' AND OLD.check_count > (
    NEW.evidence->>'question')::int)
  EXECUTE FUNCTION keep_question();
