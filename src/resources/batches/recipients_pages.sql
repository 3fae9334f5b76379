-- Returns the same page of the recipients of each of several batches: see recipients_page.
CREATE OR REPLACE FUNCTION recipients_pages(
  merchant int, batches int[], state recipient_status, method provider, number text, title text, above bigint,
  below bigint, back boolean, take int, skip int
) RETURNS TABLE (
  id bigint, merchant_id int, batch_id int, name text, account text, amount bigint, payment_method provider,
  status recipient_status, operator_reference text, failure_reason text, failure_message text,
  settled_amount bigint, evidence_source text, sent_at timestamptz, settled_at timestamptz,
  reversed_at timestamptz
) LANGUAGE sql STABLE SET search_path = public, pg_temp AS $$
  SELECT r.id, r.merchant_id, r.batch_id, r.name, r.account, r.amount, r.payment_method, r.status,
    r.operator_reference, r.failure_reason, r.failure_message, r.settled_amount, r.evidence_source, r.sent_at,
    r.settled_at, r.reversed_at
  FROM unnest(batches) AS asked (batch),
    recipients_page(merchant, asked.batch, state, method, number, title, above, below, back, take, skip) AS r
$$;

REVOKE EXECUTE ON FUNCTION recipients_pages FROM PUBLIC;
GRANT EXECUTE ON FUNCTION recipients_pages TO payments_merchant;
