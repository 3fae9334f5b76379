-- Returns the first identity, from `candidate` on, that no row has. An identity derived from an
-- `Idempotency-Key` may be in use: 30 days after its first use the key may be used for another payment.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION free_identity(candidate uuid) RETURNS uuid LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = public, pg_temp AS $$
BEGIN
  WHILE EXISTS (SELECT FROM operator_request r WHERE r.correlation_id = candidate)
    OR EXISTS (SELECT FROM payout p WHERE p.correlation_id = candidate) LOOP
    candidate := identity_after(candidate, 0);
  END LOOP;
  RETURN candidate;
END $$;
