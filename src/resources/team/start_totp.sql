-- Stores the encrypted secret of a second factor that is being set up. @returns the name of the merchant;
-- null where a second factor is active already or the member is not active
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION start_totp(member int, encrypted bytea) RETURNS text
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  UPDATE member_secret s SET totp_encrypted = encrypted, totp_step = 0
  FROM team_member t JOIN merchant m ON m.id = t.merchant_id
  WHERE s.member_id = member AND t.id = s.member_id AND t.second_factor_at IS NULL AND t.status = 'active'
  RETURNING m.name
$$;
