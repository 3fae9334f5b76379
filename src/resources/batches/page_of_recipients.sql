-- Returns a page of the recipients of a batch between two ids, newest first; oldest first if `back` is true.
-- Because sorting and bitmap scans are off, the planner reads the index on (batch_id, id) in its order.
-- Granted to payments_merchant.
CREATE OR REPLACE FUNCTION page_of_recipients(
  merchant int,
  batch int,
  statuses recipient_status[],
  methods provider[],
  account text,
  name text,
  amount_min bigint,
  amount_max bigint,
  pattern text,
  spaceless text,
  above bigint,
  below bigint,
  back boolean,
  take int,
  skip int
) RETURNS SETOF batch_recipient LANGUAGE plpgsql STABLE SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_bitmapscan = off SET enable_sort = off AS $$
BEGIN
  IF back THEN
    RETURN QUERY SELECT r.* FROM batch_recipient r
      WHERE (r.batch_id, r.id) > ($2, above) AND (r.batch_id, r.id) < ($2, below) AND r.merchant_id = $1
        AND recipient_matches(r, $3, $4, $5, $6, $7, $8, $9, $10)
      ORDER BY r.batch_id, r.id LIMIT take OFFSET skip;
  ELSE
    RETURN QUERY SELECT r.* FROM batch_recipient r
      WHERE (r.batch_id, r.id) > ($2, above) AND (r.batch_id, r.id) < ($2, below) AND r.merchant_id = $1
        AND recipient_matches(r, $3, $4, $5, $6, $7, $8, $9, $10)
      ORDER BY r.batch_id DESC, r.id DESC LIMIT take OFFSET skip;
  END IF;
END $$;
