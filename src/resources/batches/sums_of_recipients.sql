-- Counts and adds up the recipients that match a filter for each of several batches: see sum_of_recipients.
-- Granted to payments_merchant.
CREATE OR REPLACE FUNCTION sums_of_recipients(
  merchant int,
  batches int[],
  states recipient_status[],
  methods provider[],
  number text,
  title text,
  amount_min bigint,
  amount_max bigint,
  pattern text,
  spaceless text
) RETURNS TABLE (batch_id int, n int, amount bigint) LANGUAGE sql STABLE
  SET search_path = public, pg_temp AS $$
  SELECT asked.batch, sums.n, sums.amount
  FROM unnest(batches) AS asked (batch), sum_of_recipients(merchant, asked.batch, states, methods, number,
    title, amount_min, amount_max, folded(pattern), folded(spaceless)) AS sums
$$;
