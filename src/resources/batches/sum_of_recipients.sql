-- Counts the recipients of a batch that match a filter, and adds up their amounts.
-- Granted to payments_merchant.
CREATE OR REPLACE FUNCTION sum_of_recipients(
  merchant int,
  batch int,
  statuses recipient_status[],
  methods provider[],
  account text,
  name text,
  amount_min bigint,
  amount_max bigint,
  pattern text,
  spaceless text
) RETURNS TABLE (n int, amount bigint) LANGUAGE sql STABLE SET search_path = public, pg_temp AS $$
  SELECT count(*)::int, coalesce(sum(r.amount), 0)::bigint FROM batch_recipient r
  WHERE (r.batch_id, r.id) BETWEEN ($2, 0) AND ($2, 9223372036854775807) AND r.merchant_id = $1
    AND recipient_matches(r, $3, $4, $5, $6, $7, $8, $9, $10)
$$;
