-- Lists in sentences the gaps of a merchant's approvals: payments that need no approval, and API keys whose
-- payments no person can approve. Empty while approvals are off.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION approval_gaps(merchant int) RETURNS text[] LANGUAGE sql STABLE SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
  SELECT array_remove(ARRAY[
    CASE WHEN NOT m.approvals_cover_deposits THEN
      'Deposits and refunds of any amount need no approval: set approvals_cover_deposits to change that.' END,
    (SELECT format('No member can approve the payments of these API keys, because the service does not know '
        || 'who received their secrets: %s. Regenerate the keys as a signed-in owner or admin, or '
        || 'revoke them.',
          string_agg(k.id::text, ', ' ORDER BY k.id))
      FROM api_key k
      WHERE k.merchant_id = m.id AND k.issued_to_id IS NULL AND k.revoked_at IS NULL
        AND coalesce(k.expires_at > now(), true) AND k.scopes && '{deposit,payout,bulk_pay}'
          HAVING count(*) > 0)], NULL)
  FROM merchant m WHERE m.id = $1 AND m.payouts_require_approval
$$;
