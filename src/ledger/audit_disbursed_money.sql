-- Proves the money of each deposit, refund and payout: its amount was reserved once, and the reservation
-- ended as the status says. A rest that the operator did not confirm is withheld, and decided once; earlier
-- entries released it. `audit_disbursements` calls this function with its own planner settings.
CREATE OR REPLACE FUNCTION audit_disbursed_money(ids bigint[], payout_ids bigint[], origins text[])
RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE sql STABLE AS $$
  WITH subject AS (
    SELECT 'transaction:' || t.id AS origin, t.merchant_id, t.payment_method, t.amount, t.settled_amount,
      false AS scheduled, CASE t.status WHEN 'success' THEN 'completed' ELSE t.status::text END AS status,
      t.status = 'reversed' AS back, x.state AS difference,
      x.requested_amount - x.confirmed_amount AS unconfirmed
    FROM transaction t LEFT JOIN settlement_exception x ON x.merchant_id = t.merchant_id
      AND x.transaction_id = t.id
    WHERE t.transaction_type = 'deposit' AND t.id = ANY (ids)
    UNION ALL
    SELECT 'payout:' || p.id, p.merchant_id, p.payment_method, p.amount, p.settled_amount,
      p.scheduled_at IS NOT NULL, p.status::text, p.reversed_at IS NOT NULL, x.state,
      x.requested_amount - x.confirmed_amount
    FROM payout p LEFT JOIN settlement_exception x ON x.merchant_id = p.merchant_id AND x.payout_id = p.id
    WHERE p.id = ANY (payout_ids)
  ), due AS (
    -- The entries that must exist. A scheduled payout reserves nothing before it begins.
    SELECT s.*, clearing_account(s.payment_method) AS account, s.status IN ('completed', 'reversed') AS paid,
      s.status IN ('failed', 'cancelled') AS given_up
    FROM subject s
  ), money AS (
    SELECT m.origin, min(m.merchant_id) AS merchant_id, max(m.merchant_id) AS merchant_id_too,
      sum(m.amount) FILTER (WHERE m.step = 'reserve') AS reserved, sum(m.amount)
        FILTER (WHERE m.step = 'post') AS posted,
      sum(m.amount) FILTER (WHERE m.step = 'release') AS released, sum(m.amount)
        FILTER (WHERE m.step = 'void') AS voided,
      sum(m.amount) FILTER (WHERE m.step = 'reverse') AS reversed,
      sum(m.amount) FILTER (WHERE m.step = 'withhold') AS withheld,
      sum(m.amount) FILTER (WHERE m.step = 'withheld_credit') AS credited,
      sum(m.amount) FILTER (WHERE m.step = 'withheld_post') AS posted_later,
      min(CASE WHEN m.step IN ('post', 'withheld_post') THEN m.credit
        WHEN m.step = 'reverse' THEN m.debit END) AS account,
      max(CASE WHEN m.step IN ('post', 'withheld_post') THEN m.credit
        WHEN m.step = 'reverse' THEN m.debit END) AS account_too
    FROM ledger_entry m
    WHERE (m.step IN ('reserve', 'post', 'release', 'void', 'withhold', 'withheld_credit', 'withheld_post')
      OR m.step = 'reverse' AND m.credit = 'available') AND m.origin = ANY (origins)
    GROUP BY m.origin
  )
  SELECT 'disbursements_end_once', coalesce(d.merchant_id, m.merchant_id), CASE
    WHEN d.origin IS NULL THEN m.origin || ' reserved money, and is no payment out'
    ELSE format('%s over %s is %s%s: set aside %s, paid %s, given back %s, returned %s%s', d.origin, d.amount,
      d.status,
      CASE WHEN d.back THEN ', taken back' END, coalesce(m.reserved, 0), coalesce(m.posted, 0),
      coalesce(m.released, 0) + coalesce(m.voided, 0), coalesce(m.reversed, 0), CASE
        WHEN d.difference IS NOT NULL OR m.withheld > 0
        THEN format('; withheld %s (%s): credited %s, paid %s', coalesce(m.withheld, 0), d.difference,
          coalesce(m.credited, 0), coalesce(m.posted_later, 0)) END) END
  FROM due d FULL JOIN money m USING (origin)
  WHERE d.origin IS NULL
    OR CASE WHEN m.origin IS NULL THEN NOT (d.scheduled AND (d.status = 'pending' OR d.given_up))
      ELSE d.scheduled AND d.status = 'pending'
        OR (m.merchant_id, m.merchant_id_too) IS DISTINCT FROM (d.merchant_id, d.merchant_id)
        OR m.reserved IS DISTINCT FROM d.amount
        OR m.posted IS DISTINCT FROM CASE WHEN d.paid THEN d.settled_amount END
        OR coalesce(m.released, 0) <> CASE WHEN d.paid AND d.difference IS NULL
          THEN d.amount - d.settled_amount ELSE 0 END
        OR d.difference IS NOT NULL AND (d.paid AND d.unconfirmed = d.amount - d.settled_amount) IS NOT TRUE
        OR (m.withheld, m.credited, m.posted_later) IS DISTINCT FROM (d.unconfirmed,
          CASE d.difference WHEN 'credited' THEN d.unconfirmed END,
          CASE d.difference WHEN 'paid' THEN d.unconfirmed END)
        OR d.difference = 'returned'
        OR m.voided IS DISTINCT FROM CASE WHEN d.given_up THEN d.amount END
        OR m.reversed IS DISTINCT FROM CASE WHEN d.back
          THEN d.settled_amount + coalesce(m.posted_later, 0) END
        OR d.paid AND (m.account, m.account_too) IS DISTINCT FROM (d.account, d.account) END
$$;
