-- Returns the texts of a payment link in which a search looks, in the form of `folded`, each on its own line.
-- The index `payment_link_words` contains the same expression.
-- Granted to payments_merchant.
CREATE OR REPLACE FUNCTION payment_link_words(payment_link) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT folded($1.title) || E'\n' || $1.url_slug
$$;
