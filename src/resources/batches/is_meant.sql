-- Returns true if a recipient matches a filter. A null argument matches every recipient.
CREATE OR REPLACE FUNCTION is_meant(batch_recipient, recipient_status, provider, account text, name text)
  RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT ($2 IS NULL OR $1.status = $2) AND ($3 IS NULL OR $1.payment_method = $3)
    AND ($4 IS NULL OR $1.account = $4)
    AND ($5 IS NULL OR strpos(public.folded($1.name), public.folded($5)) > 0)
$$;

REVOKE EXECUTE ON FUNCTION is_meant FROM PUBLIC;
GRANT EXECUTE ON FUNCTION is_meant TO payments_merchant;
