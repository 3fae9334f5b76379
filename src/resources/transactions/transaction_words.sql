-- Returns the texts of a transaction in which a search looks, in the form of `folded`, each on its own line.
-- The index `transaction_words` contains the same expression.
-- Granted to payments_merchant.
CREATE OR REPLACE FUNCTION transaction_words(transaction) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT folded($1.reference) || E'\n' || $1.customer_phone || E'\n' ||
    folded(coalesce($1.operator_reference, ''))
$$;
