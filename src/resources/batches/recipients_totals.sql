-- Counts the recipients that match a filter for each of several batches: see recipients_total.
CREATE OR REPLACE FUNCTION recipients_totals(
  merchant int, batches int[], state recipient_status, method provider, number text, title text
) RETURNS TABLE (batch_id int, n int) LANGUAGE sql STABLE SET search_path = public, pg_temp AS $$
  SELECT asked.batch, recipients_total(merchant, asked.batch, state, method, number, title)
  FROM unnest(batches) AS asked (batch)
$$;

REVOKE EXECUTE ON FUNCTION recipients_totals FROM PUBLIC;
GRANT EXECUTE ON FUNCTION recipients_totals TO payments_merchant;
