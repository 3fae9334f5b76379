-- Proves that the money of each recipient of a batch was paid, withheld or given back as the status says.
-- `audit_batches` calls this function with its own planner settings.
CREATE OR REPLACE FUNCTION audit_recipient_money(ids int[], origins text[])
RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE sql STABLE AS $$
  WITH money AS (
    SELECT m.origin, min(m.merchant_id) AS merchant_id, max(m.merchant_id) AS merchant_id_too,
      sum(m.amount) FILTER (WHERE m.step = 'post') AS posted, sum(m.amount)
        FILTER (WHERE m.step = 'release') AS released,
      sum(m.amount) FILTER (WHERE m.step = 'void') AS voided, sum(m.amount)
        FILTER (WHERE m.step = 'reverse') AS reversed,
      sum(m.amount) FILTER (WHERE m.step = 'withhold') AS withheld,
      sum(m.amount) FILTER (WHERE m.step = 'withheld_credit') AS credited,
      sum(m.amount) FILTER (WHERE m.step = 'withheld_post') AS posted_later,
      count(*) FILTER (WHERE m.step NOT IN ('post', 'release', 'void', 'reverse', 'withhold',
        'withheld_credit', 'withheld_post')) AS others,
      min(CASE WHEN m.step IN ('post', 'withheld_post') THEN m.credit
        WHEN m.step = 'reverse' THEN m.debit END) AS account,
      max(CASE WHEN m.step IN ('post', 'withheld_post') THEN m.credit
        WHEN m.step = 'reverse' THEN m.debit END) AS account_too
    FROM ledger_entry m WHERE m.origin LIKE 'recipient:%' AND m.origin = ANY (origins) GROUP BY m.origin
  ), due AS (
    SELECT 'recipient:' || r.id AS origin, r.*, x.state AS difference,
      x.requested_amount - x.confirmed_amount AS unconfirmed
    FROM batch_recipient r LEFT JOIN settlement_exception x ON x.merchant_id = r.merchant_id
      AND x.recipient_id = r.id
    WHERE r.batch_id = ANY (ids)
  )
  SELECT 'batches_end_once', coalesce(d.merchant_id, m.merchant_id),
    format('%s over %s is %s: paid %s, given back %s, returned %s, withheld %s (%s): credited %s, paid %s',
      coalesce(d.origin, m.origin), d.amount, d.status, m.posted,
      coalesce(m.released, 0) + coalesce(m.voided, 0), m.reversed, m.withheld, d.difference, m.credited,
      m.posted_later)
  FROM due d FULL JOIN money m USING (origin)
  WHERE d.origin IS NULL OR CASE WHEN d.status IN ('success', 'failed')
    THEN (m.merchant_id, m.merchant_id_too, m.posted, coalesce(m.released, 0), m.voided, m.reversed, m.others)
        IS DISTINCT FROM (d.merchant_id, d.merchant_id, d.settled_amount,
          CASE WHEN d.difference IS NULL THEN coalesce(d.amount - d.settled_amount, 0) ELSE 0 END,
          CASE d.status WHEN 'failed' THEN d.amount END, CASE WHEN d.reversed_at IS NOT NULL
            THEN d.settled_amount + coalesce(m.posted_later, 0) END, 0)
      OR (m.withheld, m.credited, m.posted_later) IS DISTINCT FROM (d.unconfirmed,
        CASE d.difference WHEN 'credited' THEN d.unconfirmed END,
        CASE d.difference WHEN 'paid' THEN d.unconfirmed END)
      OR d.difference IS NOT NULL AND (d.difference <> 'returned' AND d.status = 'success'
        AND d.unconfirmed = d.amount - d.settled_amount) IS NOT TRUE
      OR d.status = 'success' AND (m.account, m.account_too)
        IS DISTINCT FROM (clearing_account(d.payment_method), clearing_account(d.payment_method))
    ELSE m.origin IS NOT NULL END
$$;
