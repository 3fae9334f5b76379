-- Whoever asks an operator holds a question that is due again unless its answer is noted. An older word that
-- settles meanwhile leaves it due: what the younger one heard (that the money was taken back) would be gone
-- with its process. The evidence of a word names the question that it answers, counted as the request counts
-- them.
CREATE OR REPLACE FUNCTION keep_question() RETURNS trigger LANGUAGE plpgsql SET search_path = public,
  pg_temp AS $$
BEGIN
  NEW.next_check_at := OLD.next_check_at;
  RETURN NEW;
END $$;

REVOKE EXECUTE ON FUNCTION keep_question FROM PUBLIC;

CREATE OR REPLACE TRIGGER operator_request_keep_question BEFORE UPDATE OF state ON operator_request
  FOR EACH ROW
  WHEN (NEW.state = 'settled' AND OLD.state <> 'settled' AND OLD.check_count > (
    NEW.evidence->>'question')::int)
  EXECUTE FUNCTION keep_question();
