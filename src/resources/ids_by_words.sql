-- Returns the ids of all rows of a merchant's list in whose words a text occurs, by the index. Row-level
-- security keeps LIKE out of an index, so the function has the rights of its owner and names the merchant
-- itself, which must be the one that the session is bound to; the caller reads the rows by these ids with its
-- own rights. `spaceless` is a second form of the text, or null. Payments that have not ended are not in the
-- index of words. Each form is asked for alone, because for both together PostgreSQL may read all rows of the
-- merchant in the index. The plan depends on the text, so it is made for each. Few rows are expected, so that
-- the caller looks them up one by one.
-- Granted to payments_merchant.
CREATE OR REPLACE FUNCTION ids_by_words(list text, merchant int, pattern text, spaceless text)
RETURNS SETOF bigint LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 100
SET search_path = public, pg_temp SET plan_cache_mode = force_custom_plan AS $$
BEGIN
  IF merchant IS DISTINCT FROM nullif(current_setting('app.merchant', true), '')::int THEN
    RETURN;
  END IF;
  CASE list
  WHEN 'transaction' THEN
    RETURN QUERY SELECT t.id FROM transaction t WHERE t.merchant_id + 0 = merchant
        AND t.status NOT IN ('pending', 'processing') AND transaction_words(t) LIKE pattern
      UNION SELECT t.id FROM transaction t WHERE t.merchant_id + 0 = merchant
        AND t.status NOT IN ('pending', 'processing') AND transaction_words(t) LIKE spaceless
      UNION SELECT t.id FROM transaction t WHERE t.merchant_id = merchant
        AND t.status IN ('pending', 'processing')
        AND (transaction_words(t) LIKE pattern OR transaction_words(t) LIKE spaceless);
  WHEN 'payout' THEN
    RETURN QUERY SELECT p.id FROM payout p WHERE p.merchant_id + 0 = merchant
        AND p.status NOT IN ('pending', 'processing') AND payout_words(p) LIKE pattern
      UNION SELECT p.id FROM payout p WHERE p.merchant_id + 0 = merchant
        AND p.status NOT IN ('pending', 'processing') AND payout_words(p) LIKE spaceless
      UNION SELECT p.id FROM payout p WHERE p.merchant_id = merchant
        AND p.status IN ('pending', 'processing')
        AND (payout_words(p) LIKE pattern OR payout_words(p) LIKE spaceless);
  WHEN 'payment_link' THEN
    RETURN QUERY SELECT l.id::bigint FROM payment_link l WHERE l.merchant_id + 0 = merchant
        AND payment_link_words(l) LIKE pattern
      UNION SELECT l.id::bigint FROM payment_link l WHERE l.merchant_id + 0 = merchant
        AND payment_link_words(l) LIKE spaceless;
  END CASE;
END $$;
