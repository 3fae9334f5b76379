-- Returns true if a recipient matches a filter. A null argument matches every recipient. A pattern is one of
-- LIKE; `spaceless` is a second form of it, or null.
-- Granted to payments_merchant.
CREATE OR REPLACE FUNCTION recipient_matches(
  batch_recipient,
  recipient_status[],
  provider[],
  account text,
  name text,
  amount_min bigint,
  amount_max bigint,
  pattern text,
  spaceless text
) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT ($2 IS NULL OR $1.status = ANY ($2)) AND ($3 IS NULL OR $1.payment_method = ANY ($3))
    AND ($4 IS NULL OR $1.account = $4)
    AND ($5 IS NULL OR strpos(public.folded($1.name), public.folded($5)) > 0)
    AND ($6 IS NULL OR $1.amount >= $6) AND ($7 IS NULL OR $1.amount <= $7)
    AND ($8 IS NULL OR public.recipient_words($1) LIKE $8 OR public.recipient_words($1) LIKE $9)
$$;
