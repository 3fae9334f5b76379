-- Returns the entry that an event is in the timeline of a payment, and the party that caused the event.
-- `of_refund`: the event is about a refund of the payment. `kind` is null if another entry says the same.
CREATE OR REPLACE FUNCTION timeline_event(
  type text,
  data jsonb,
  of_refund boolean,
  OUT kind text,
  OUT source text
) LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT shown.kind, CASE
    WHEN shown.kind = 'difference_decided' THEN 'platform'
    WHEN shown.kind IN ('approved', 'refund_requested') OR data->>'approval' = 'rejected'
      OR data->>'refunded' = 'true' THEN 'merchant'
    -- Only the service gives these reasons (`failure-reasons.ts`).
    WHEN type IN ('payment_expired', 'deposit_pending', 'deposit_processing', 'deposit_cancelled')
      OR data->>'failure_reason' IN ('OPERATOR_UNAVAILABLE', 'INSUFFICIENT_BALANCE') THEN 'service'
    ELSE 'operator' END
  FROM (SELECT CASE
    WHEN of_refund THEN CASE
      WHEN type IN ('deposit_pending', 'deposit_processing') AND NOT data ? 'previous_status'
        THEN 'refund_requested'
      WHEN type = 'deposit_completed' THEN 'refunded'
      WHEN type IN ('deposit_failed', 'deposit_cancelled', 'deposit_reversed') THEN 'refund_failed' END
    WHEN type = 'approval_given' THEN 'approved'
    WHEN type = 'deposit_pending' THEN 'approval_requested'
    WHEN type IN ('payment_excess_credited', 'payment_excess_returned', 'withheld_credited', 'withheld_paid')
      THEN 'difference_decided'
    WHEN data ? 'previous_status' THEN 'status_changed' END AS kind) AS shown
$$;
