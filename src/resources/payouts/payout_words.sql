-- Returns the texts of a payout in which a search looks, in the form of `folded`, each on its own line. The
-- index `payout_words` contains the same expression.
-- Granted to payments_merchant.
CREATE OR REPLACE FUNCTION payout_words(payout) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT folded($1.reference) || E'\n' || $1.destination_phone || E'\n' ||
    folded(coalesce($1.operator_reference, '')) || E'\n' || folded(coalesce($1.beneficiary_name, ''))
$$;
