-- Returns the SHA-256 of the facts of a batch that people approve: merchant, id, count and total, and each
-- recipient's operator, account, amount and name.
CREATE OR REPLACE FUNCTION batch_digest(batch) RETURNS bytea LANGUAGE sql STABLE SET search_path = public,
  pg_temp AS $$
  SELECT sha256(convert_to(format('batch:v1|%s|%s|%s|%s', $1.merchant_id, $1.id, $1.recipient_count,
    $1.total_amount)
    || coalesce(string_agg(format(E'\n%s|%s|%s|%s', r.payment_method, r.account, r.amount, r.name), ''
      ORDER BY r.id), ''), 'UTF8'))
  FROM batch_recipient r WHERE r.batch_id = $1.id
$$;
