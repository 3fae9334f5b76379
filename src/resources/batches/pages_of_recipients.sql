-- Returns the same page of the recipients of each of several batches: see page_of_recipients.
-- Granted to payments_merchant.
CREATE OR REPLACE FUNCTION pages_of_recipients(
  merchant int,
  batches int[],
  states recipient_status[],
  methods provider[],
  number text,
  title text,
  amount_min bigint,
  amount_max bigint,
  pattern text,
  spaceless text,
  above bigint,
  below bigint,
  back boolean,
  take int,
  skip int
) RETURNS TABLE (
  id bigint,
  merchant_id int,
  batch_id int,
  name text,
  account text,
  amount bigint,
  payment_method provider,
  status recipient_status,
  operator_reference text,
  failure_reason text,
  failure_message text,
  settled_amount bigint,
  evidence_source text,
  sent_at timestamptz,
  settled_at timestamptz,
  reversed_at timestamptz
) LANGUAGE sql STABLE SET search_path = public, pg_temp AS $$
  SELECT r.id, r.merchant_id, r.batch_id, r.name, r.account, r.amount, r.payment_method, r.status,
    r.operator_reference, r.failure_reason, r.failure_message, r.settled_amount, r.evidence_source, r.sent_at,
    r.settled_at, r.reversed_at
  FROM unnest(batches) AS asked (batch),
    page_of_recipients(merchant, asked.batch, states, methods, number, title, amount_min, amount_max,
      folded(pattern), folded(spaceless), above, below, back, take, skip) AS r
$$;
