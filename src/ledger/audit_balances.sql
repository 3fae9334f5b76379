-- Proves every balance, and the positions of the events of every merchant: they must agree with the values
-- kept up to the proven point (`audit_point`, `audit_proven`) plus the rows written after it; if `anew`, with
-- the sums of all rows. A gap in the positions that a restore made is allowed; any other gap is a problem.
CREATE OR REPLACE FUNCTION audit_balances(anew boolean) RETURNS TABLE (
  invariant text,
  merchant_id int,
  problem text
)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan SET jit = off SET work_mem = '64MB' SET enable_seqscan = on AS $$
#variable_conflict use_column
DECLARE
  since_entry bigint := coalesce((SELECT p.ledger_entry_id FROM audit_point p WHERE NOT anew), 0);
BEGIN
  RETURN QUERY
  WITH moved AS (
    SELECT m.merchant_id,
      sum(CASE 'available'::ledger_account WHEN m.credit THEN m.amount WHEN m.debit THEN -m.amount
        ELSE 0 END) AS available,
      sum(CASE 'reserved'::ledger_account WHEN m.credit THEN m.amount WHEN m.debit THEN -m.amount
        ELSE 0 END) AS reserved,
      sum(CASE 'suspense'::ledger_account WHEN m.debit THEN m.amount WHEN m.credit THEN -m.amount
        ELSE 0 END) AS receivable
    FROM ledger_entry m WHERE m.id > since_entry GROUP BY m.merchant_id
  ), rebuilt AS (
    SELECT merchant_id, coalesce(p.available, 0) + coalesce(m.available, 0) AS available,
      coalesce(p.reserved, 0) + coalesce(m.reserved, 0) AS reserved,
      coalesce(p.receivable, 0) + coalesce(m.receivable, 0) AS receivable
    FROM (SELECT * FROM audit_proven WHERE NOT anew) p FULL JOIN moved m USING (merchant_id)
  )
  SELECT 'balances_equal_entries', merchant_id, CASE WHEN b.available IS NULL
    THEN 'has entries but no balance'
    ELSE format('balance says available %s, reserved %s%s; its entries say %s, %s%s', b.available,
      b.reserved, ', receivable ' || nullif(b.receivable, 0), coalesce(r.available, 0),
      coalesce(r.reserved, 0), ', ' || nullif(r.receivable, 0)) END
  FROM merchant_balance b FULL JOIN rebuilt r USING (merchant_id)
  WHERE (b.available, b.reserved, b.receivable)
    IS DISTINCT FROM (coalesce(r.available, 0), coalesce(r.reserved, 0), coalesce(r.receivable, 0));

  RETURN QUERY
  SELECT 'no_balance_below_zero', b.merchant_id,
    format('available %s, reserved %s, receivable %s', b.available, b.reserved, b.receivable)
  FROM merchant_balance b WHERE b.available < 0 OR b.reserved < 0 OR b.receivable < 0;

  -- A merchant that owes money has nothing available.
  RETURN QUERY
  SELECT 'debts_are_paid_first', b.merchant_id, format('available %s, and %s are owed', b.available,
    b.receivable)
  FROM merchant_balance b WHERE b.receivable > 0 AND b.available > 0;

  RETURN QUERY
  SELECT 'events_report_every_change', h.merchant_id,
    format('positions end at %s, with %s of %s events after %s', h.position, found.count,
      h.position - found.since, found.since)
  FROM event_log_position h
  LEFT JOIN (SELECT * FROM audit_proven WHERE NOT anew) p USING (merchant_id)
  CROSS JOIN LATERAL (
    SELECT coalesce(p.position, 0) AS since, count(*) AS count, coalesce(max(e.position), 0) AS last,
      (SELECT coalesce(sum(g.last_position - g.after_position), 0) FROM event_gap g
       WHERE g.merchant_id = h.merchant_id AND g.after_position >= coalesce(p.position, 0)) AS skipped
    FROM event e WHERE e.merchant_id = h.merchant_id AND e.position > coalesce(p.position, 0)
  ) found
  WHERE (anew OR h.position <> coalesce(p.position, 0))
    AND (found.count <> h.position - found.since - found.skipped OR found.last <> h.position);
END $$;
