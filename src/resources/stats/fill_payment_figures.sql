-- Makes the figures of dashboards anew from all payments, and notes it. A change that is recorded, but not
-- added to the figures yet, is subtracted: it is added later.
CREATE OR REPLACE FUNCTION fill_payment_figures() RETURNS void LANGUAGE plpgsql
  SET search_path = public, pg_temp AS $$
BEGIN
  -- The lock of `compact_transaction_counts`: from here to the end no recorded change is added or removed.
  PERFORM pg_advisory_xact_lock(72707374);
  DELETE FROM payment_figure;
  DELETE FROM settle_time;
  DELETE FROM link_figure;
  WITH payment AS (
    SELECT merchant_id, date_trunc('hour', created_at, 'UTC') AS hour,
      transaction_type::text::payment_kind AS kind, payment_method, status,
      coalesce(failure_reason, '') AS failure_reason, payment_link_id,
      CASE status WHEN 'success' THEN settle_class(created_at, settled_at) ELSE 0 END AS settle_class,
      1 AS n, amount, coalesce(settled_amount, 0) AS settled_amount
    FROM transaction WHERE transaction_type <> 'balance_check'
    UNION ALL
    SELECT merchant_id, hour, transaction_type::text::payment_kind, payment_method, status, failure_reason,
      payment_link_id, settle_class, -n, -amount, -settled_amount
    FROM transaction_count_change WHERE transaction_type <> 'balance_check'
    UNION ALL
    SELECT merchant_id, date_trunc('hour', created_at, 'UTC'), 'payout', payment_method,
      CASE WHEN reversed_at IS NOT NULL THEN 'reversed' WHEN status = 'completed' THEN 'success'
        ELSE status::text END::transaction_status,
      coalesce(failure_reason, ''), NULL,
      CASE WHEN status = 'completed' AND reversed_at IS NULL THEN settle_class(send_at, settled_at)
        ELSE 0 END,
      1, amount, coalesce(settled_amount, 0)
    FROM payout
    UNION ALL
    SELECT merchant_id, date_trunc('hour', sent_at, 'UTC'), 'recipient', payment_method,
      CASE WHEN reversed_at IS NOT NULL THEN 'reversed' ELSE status::text END::transaction_status,
      coalesce(failure_reason, ''), NULL,
      CASE WHEN status = 'success' AND reversed_at IS NULL THEN settle_class(sent_at, settled_at) ELSE 0 END,
      1, amount, coalesce(settled_amount, 0)
    FROM batch_recipient WHERE sent_at IS NOT NULL
    UNION ALL
    SELECT merchant_id, hour, kind, payment_method, status, failure_reason, NULL, settle_class, -n, -amount,
      -settled_amount
    FROM disbursement_change
  ), hourly AS MATERIALIZED (
    SELECT merchant_id, hour, kind, payment_method, status, failure_reason, payment_link_id, settle_class,
      sum(n) AS n, sum(amount) AS amount, sum(settled_amount) AS settled_amount
    FROM payment GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
  ), figures AS (
    INSERT INTO payment_figure (merchant_id, hours, start, kind, payment_method, status, failure_reason, n,
      amount, settled_amount)
    SELECT merchant_id, hours, date_bin(hours * interval '1 hour', hour, '2000-01-01 UTC'), kind,
      payment_method, status, failure_reason, sum(n), sum(amount), sum(settled_amount)
    FROM hourly CROSS JOIN (VALUES (1), (24)) AS s (hours)
    GROUP BY 1, 2, 3, 4, 5, 6, 7 HAVING sum(n) <> 0 OR sum(amount) <> 0 OR sum(settled_amount) <> 0
  ), times AS (
    INSERT INTO settle_time (merchant_id, hours, start, kind, payment_method, settle_class, n)
    SELECT merchant_id, hours, date_bin(hours * interval '1 hour', hour, '2000-01-01 UTC'), kind,
      payment_method, settle_class, sum(n)
    FROM hourly CROSS JOIN (VALUES (1), (24)) AS s (hours)
    WHERE settle_class > 0
    GROUP BY 1, 2, 3, 4, 5, 6 HAVING sum(n) <> 0
  )
  INSERT INTO link_figure (merchant_id, payment_link_id, status, settle_class, n, amount, settled_amount)
  SELECT merchant_id, payment_link_id, status, settle_class, sum(n), sum(amount), sum(settled_amount)
  FROM hourly WHERE payment_link_id IS NOT NULL
  GROUP BY 1, 2, 3, 4 HAVING sum(n) <> 0 OR sum(amount) <> 0 OR sum(settled_amount) <> 0;
  DELETE FROM _payment_figure_fill;
  INSERT INTO _payment_figure_fill VALUES (clock_timestamp());
END $$;
