-- What merchants read of recipients.

-- What merchants read of what operators were asked: nothing that it was asked with.
GRANT SELECT ("merchant_id", "recipient_id", "correlation_id", "state", "attempt", "check_count", "accepted_at", "created_at")
  ON "operator_request" TO payments_merchant;

-- A name as it is looked for, without capitals and accents, whatever the locale of the database.
CREATE FUNCTION folded(name text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT translate(lower($1), 'ÀÂÄÇÈÉÊËÎÏÔÖÙÛÜŸàâäçèéêëîïôöùûüÿƐƆƝŊ', 'aaaceeeeiioouuuyaaaceeeeiioouuuyɛɔɲŋ')
$$;

-- Whether a recipient is one of those that a list shows; null asks nothing.
CREATE FUNCTION is_meant(batch_recipient, recipient_status, provider, account text, name text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT ($2 IS NULL OR $1.status = $2) AND ($3 IS NULL OR $1.payment_method = $3) AND ($4 IS NULL OR $1.account = $4)
    AND ($5 IS NULL OR strpos(public.folded($1.name), public.folded($5)) > 0)
$$;

-- A page of the recipients of a batch between two ids, newest first or, for a page from behind (`back`), oldest first. Written
-- and set so, only the index of the batch can answer, in its order, whatever the planner believes of the others.
CREATE FUNCTION recipients_page(
  merchant int, batch int, status recipient_status, method provider, account text, name text, above bigint, below bigint,
  back boolean, take int, skip int
) RETURNS SETOF batch_recipient LANGUAGE plpgsql STABLE SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_bitmapscan = off SET enable_sort = off AS $$
BEGIN
  IF back THEN
    RETURN QUERY SELECT r.* FROM batch_recipient r
      WHERE (r.batch_id, r.id) > ($2, above) AND (r.batch_id, r.id) < ($2, below) AND r.merchant_id = $1
        AND is_meant(r, $3, $4, $5, $6)
      ORDER BY r.batch_id, r.id LIMIT take OFFSET skip;
  ELSE
    RETURN QUERY SELECT r.* FROM batch_recipient r
      WHERE (r.batch_id, r.id) > ($2, above) AND (r.batch_id, r.id) < ($2, below) AND r.merchant_id = $1
        AND is_meant(r, $3, $4, $5, $6)
      ORDER BY r.batch_id DESC, r.id DESC LIMIT take OFFSET skip;
  END IF;
END $$;

-- How many recipients of a batch a list would show.
CREATE FUNCTION recipients_total(
  merchant int, batch int, status recipient_status, method provider, account text, name text
) RETURNS int LANGUAGE sql STABLE SET search_path = public, pg_temp AS $$
  SELECT count(*)::int FROM batch_recipient r
  WHERE (r.batch_id, r.id) BETWEEN ($2, 0) AND ($2, 9223372036854775807) AND r.merchant_id = $1 AND is_meant(r, $3, $4, $5, $6)
$$;

REVOKE EXECUTE ON FUNCTION folded, is_meant, recipients_page, recipients_total FROM PUBLIC;
GRANT EXECUTE ON FUNCTION folded, is_meant, recipients_page, recipients_total TO payments_merchant;
