-- Records that an account signed in from an address, both as hashes. If `alone`, the other addresses of the
-- account are deleted. An account keeps its 100 newest addresses.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION remember_sign_in_address(
  given_account text,
  given_address text,
  alone boolean
) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  DELETE FROM sign_in_address WHERE alone AND account = given_account AND address <> given_address;
  DELETE FROM sign_in_address WHERE account = given_account AND address IN (
    SELECT a.address FROM sign_in_address a WHERE a.account = given_account AND a.address <> given_address
    ORDER BY a.seen_at DESC, a.address OFFSET 99);
  INSERT INTO sign_in_address (account, address) VALUES (given_account, given_address)
  ON CONFLICT (account, address) DO UPDATE SET seen_at = now()
$$;
