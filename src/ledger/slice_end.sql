-- Returns the last id of a slice: the rows of one table above `after` whose proof reads about `most` rows.
-- Null where there is no row above. `prove_slice` calls this function with its own planner settings.
CREATE OR REPLACE FUNCTION slice_end(stage text, after bigint, most int) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
DECLARE
  upto bigint;
BEGIN
  CASE stage
    WHEN 'batch' THEN
      SELECT max(b.id) INTO upto FROM (
        SELECT b.id, sum(b.recipient_count) OVER (ORDER BY b.id) - b.recipient_count AS before FROM (
          SELECT * FROM batch b WHERE b.id > after ORDER BY b.id LIMIT greatest(most / 100, 1)) b
      ) b WHERE b.before < most;
    WHEN 'payment_link' THEN
      SELECT max(l.id) INTO upto FROM (
        SELECT l.id, sum(l.usage_count) OVER (ORDER BY l.id) - l.usage_count AS before FROM (
          SELECT * FROM payment_link l WHERE l.id > after ORDER BY l.id LIMIT greatest(most / 10, 1)) l
      ) l WHERE l.before < most;
    WHEN 'payout_count' THEN
      SELECT max(k.merchant_id) INTO upto FROM (
        SELECT k.merchant_id, sum(k.n) OVER (ORDER BY k.merchant_id) - k.n AS before FROM (
          SELECT k.merchant_id, sum(k.n) AS n FROM payout_count k WHERE k.merchant_id > after
          GROUP BY 1 ORDER BY 1 LIMIT most) k
      ) k WHERE k.before < most;
    WHEN 'balance_snapshot' THEN
      SELECT max(s.id) INTO upto FROM (
        SELECT s.id FROM balance_snapshot s WHERE s.id > after ORDER BY s.id LIMIT greatest(most / 256, 1)) s;
    ELSE
      EXECUTE format('SELECT max(id) FROM (SELECT id FROM %I WHERE id > $1 ORDER BY id LIMIT $2) s', stage)
      INTO upto USING after, most;
  END CASE;
  RETURN upto;
END $$;
