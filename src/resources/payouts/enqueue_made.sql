-- Enqueues the job that sends an operator's payouts, in the transaction that creates a payout that
-- has no schedule and needs no approval.
CREATE OR REPLACE FUNCTION enqueue_made() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
BEGIN
  PERFORM enqueue_each('payouts.send', 'provider', ARRAY(
    SELECT DISTINCT m.payment_method FROM made m WHERE m.scheduled_at IS NULL
      AND m.approval = 'not_required'));
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER enqueue AFTER INSERT ON payout REFERENCING NEW TABLE AS made
FOR EACH STATEMENT EXECUTE FUNCTION enqueue_made();
