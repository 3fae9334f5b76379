-- A time that a merchant gives is in the years 1 to 9999 in UTC: JavaScript writes any other year with a sign
-- and six digits, and the lists could not be read. Before the first release no row is outside of these years.
ALTER TABLE payment_link ADD CONSTRAINT payment_link_expires_at
  CHECK (expires_at >= '0001-01-01 00:00:00+00' AND expires_at < '10000-01-01 00:00:00+00');
ALTER TABLE payout ADD CONSTRAINT payout_scheduled_at
  CHECK (scheduled_at >= '0001-01-01 00:00:00+00' AND scheduled_at < '10000-01-01 00:00:00+00');
ALTER TABLE api_key ADD CONSTRAINT api_key_expires_at
  CHECK (expires_at >= '0001-01-01 00:00:00+00' AND expires_at < '10000-01-01 00:00:00+00');
