-- Counts the recipients that match a filter for each of several batches: see total_of_recipients.
CREATE OR REPLACE FUNCTION totals_of_recipients(
  merchant int, batches int[], states recipient_status[], methods provider[], number text, title text,
  amount_min bigint, amount_max bigint
) RETURNS TABLE (batch_id int, n int) LANGUAGE sql STABLE SET search_path = public, pg_temp AS $$
  SELECT asked.batch, total_of_recipients(merchant, asked.batch, states, methods, number, title, amount_min,
    amount_max)
  FROM unnest(batches) AS asked (batch)
$$;

REVOKE EXECUTE ON FUNCTION totals_of_recipients FROM PUBLIC;
GRANT EXECUTE ON FUNCTION totals_of_recipients TO payments_merchant;
