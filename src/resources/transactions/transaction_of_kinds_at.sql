-- Returns the newest id of a page and a lower bound of its ids, for a list of some types, operators and
-- statuses (null: all of them), newest first: the next `take` rows after `skip` rows. Rows enter and leave
-- such a list anywhere, so the blocks are counted from the newest one down. `oldest` is at most the id of the
-- last row of the page. The order by merchant and id keeps PostgreSQL from walking the ids of all merchants.
-- Granted to payments_service and payments_merchant.
CREATE OR REPLACE FUNCTION transaction_of_kinds_at(
  merchant int,
  types transaction_type[],
  methods provider[],
  states transaction_status[],
  skip bigint,
  take bigint
) RETURNS TABLE (oldest bigint, newest bigint) LANGUAGE plpgsql STABLE SET search_path = public, pg_temp AS $$
DECLARE
  remaining bigint;
  block bigint;
  next_block bigint;
BEGIN
  SELECT min(first_id), max(first_id), skip - min(newer) INTO oldest, block, remaining
  FROM (
    SELECT first_id, n, (sum(n) OVER (ORDER BY first_id DESC))::bigint - n AS newer
    FROM (
      SELECT first_id, sum(n)::bigint AS n
      FROM (
        SELECT k.first_id, k.n FROM transaction_block_count k
        WHERE k.merchant_id = merchant AND (types IS NULL OR k.transaction_type = ANY (types))
          AND (methods IS NULL OR k.payment_method = ANY (methods))
          AND (states IS NULL OR k.status = ANY (states))
        UNION ALL
        SELECT coalesce((
          SELECT max(b.first_id) FROM transaction_block b
          WHERE b.merchant_id = merchant AND b.first_id <= c.bucket * 1024), 0), c.n
        FROM transaction_count_change c
        WHERE c.merchant_id = merchant AND (types IS NULL OR c.transaction_type = ANY (types))
          AND (methods IS NULL OR c.payment_method = ANY (methods))
          AND (states IS NULL OR c.status = ANY (states))
      ) AS counted
      GROUP BY first_id HAVING sum(n) > 0
    ) AS blocks
  ) AS numbered
  WHERE newer < skip + take AND newer + n > skip;
  IF block IS NULL THEN RETURN; END IF;
  next_block := coalesce((
    SELECT b.first_id FROM transaction_block b
    WHERE b.merchant_id = merchant AND b.first_id > block ORDER BY b.first_id LIMIT 1), 9223372036854775807);
  newest := (
    SELECT t.id FROM transaction t
    WHERE t.merchant_id BETWEEN merchant AND merchant AND t.id >= block AND t.id < next_block
      AND (types IS NULL OR t.transaction_type = ANY (types))
      AND (methods IS NULL OR t.payment_method = ANY (methods))
      AND (states IS NULL OR t.status = ANY (states))
    ORDER BY t.merchant_id DESC, t.id DESC LIMIT 1 OFFSET remaining);
  RETURN NEXT;
END $$;
