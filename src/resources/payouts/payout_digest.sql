-- The digest that a person approves: SHA-256 of merchant, method, number, amount, scheduled time and
-- reference. The reference comes last, because it may contain any character.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION payout_digest(
  merchant int,
  method provider,
  phone text,
  amount bigint,
  reference text,
  scheduled timestamptz
)
RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT sha256(convert_to(format('payout:v1|%s|%s|%s|%s|%s|%s', merchant, method, phone, amount,
    floor(extract(epoch FROM scheduled) * 1000), reference), 'UTF8'))
$$;
