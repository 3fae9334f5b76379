-- Returns the texts of a recipient in which a search looks, in the form of `folded`, each on its own line.
-- Granted to payments_merchant.
CREATE OR REPLACE FUNCTION recipient_words(batch_recipient) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT public.folded($1.name) || E'\n' || $1.account || E'\n' ||
    public.folded(coalesce($1.operator_reference, ''))
$$;
