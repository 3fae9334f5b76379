-- For nodes of the previous release, which go on while a deployment is under way.
CREATE OR REPLACE FUNCTION decide_approval(
  merchant int, payout bigint, batch int, credential int, credential_version int, decided approval_status,
  shown bytea, why text, address text DEFAULT ''
) RETURNS TABLE (outcome text, approval approval_status, status text)
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  SELECT outcome, approval, status FROM decide_waiting(merchant, CASE WHEN payout IS NULL THEN 'batch'
    ELSE 'payout' END,
    coalesce(payout, batch), credential, credential_version, decided, shown, why, address)
$$;

REVOKE EXECUTE ON FUNCTION decide_approval FROM PUBLIC;
GRANT EXECUTE ON FUNCTION decide_approval TO payments_service;
