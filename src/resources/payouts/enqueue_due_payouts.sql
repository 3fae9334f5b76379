-- Enqueues each operator that has at least one payout that may begin now. One due payout is enough: the
-- LIMIT avoids a read of all due payouts.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION enqueue_due_payouts() RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
  SET plan_cache_mode = force_generic_plan AS $$
DECLARE
  at timestamptz := service_now();
BEGIN
  IF EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS NULL) THEN RETURN 0; END IF;
  RETURN enqueue_each('payouts.send', 'provider', ARRAY(
    SELECT o FROM unnest(enum_range(NULL::provider)) AS o CROSS JOIN LATERAL (
      SELECT FROM payout p
      WHERE p.payment_method = o AND p.status = 'pending' AND p.approval IN ('not_required', 'approved')
        AND p.send_at <= at
        AND p.merchant_id NOT IN (SELECT m.id FROM merchant m WHERE m.status <> 'active')
        AND (p.scheduled_at IS NOT NULL OR p.merchant_id NOT IN (
          SELECT b.merchant_id FROM merchant_balance b WHERE b.receivable > 0))
      LIMIT 1) AS due));
END $$;
