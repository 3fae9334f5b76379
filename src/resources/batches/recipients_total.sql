-- Counts the recipients of a batch that match a filter.
CREATE OR REPLACE FUNCTION recipients_total(
  merchant int, batch int, status recipient_status, method provider, account text, name text
) RETURNS int LANGUAGE sql STABLE SET search_path = public, pg_temp AS $$
  SELECT count(*)::int FROM batch_recipient r
  WHERE (r.batch_id, r.id) BETWEEN ($2, 0) AND ($2, 9223372036854775807) AND r.merchant_id = $1
    AND is_meant(r, $3, $4, $5, $6)
$$;

REVOKE EXECUTE ON FUNCTION recipients_total FROM PUBLIC;
GRANT EXECUTE ON FUNCTION recipients_total TO payments_merchant;
