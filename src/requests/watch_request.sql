-- Sets when the service asks again about a settled request; null: never again. A request that a callback made
-- due meanwhile stays due, and a reversed payment is not asked about again.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION watch_request(of_request bigint, next_ms bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  UPDATE operator_request r
  SET next_check_at = CASE WHEN NOT EXISTS (
        SELECT FROM ledger_entry m
        WHERE m.origin = coalesce('transaction:' || r.transaction_id, 'payout:' || r.payout_id,
            'recipient:' || r.recipient_id)
          AND m.step IN ('reverse', 'shortfall'))
      THEN service_now() + next_ms * interval '1 millisecond' END
  WHERE r.id = of_request AND r.state = 'settled'
    AND r.next_check_at > service_now() + (clock_timestamp() - now());
END $$;
