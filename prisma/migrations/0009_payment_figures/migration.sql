-- The figures of dashboards: counts, amounts and times to settle of all payments, kept by the hour and by the
-- day in UTC as payments change.
ALTER TABLE merchant ADD COLUMN time_zone text NOT NULL DEFAULT 'Africa/Bamako'
  CONSTRAINT merchant_time_zone CHECK (char_length(time_zone) BETWEEN 1 AND 64);

CREATE TYPE payment_kind AS ENUM ('pay', 'deposit', 'payout', 'recipient');

ALTER TABLE transaction_count_change
  ADD COLUMN failure_reason text NOT NULL DEFAULT '',
  ADD COLUMN settle_class bigint NOT NULL DEFAULT 0,
  ADD COLUMN payment_link_id integer;

-- The changes that payouts and recipients of batches make, until they are added to the figures. Rows are only
-- inserted, so that no statement waits for another.
CREATE TABLE disbursement_change (
  merchant_id integer NOT NULL,
  id bigserial,
  hour timestamptz(3) NOT NULL,
  kind payment_kind NOT NULL,
  payment_method provider NOT NULL,
  status transaction_status NOT NULL,
  failure_reason text NOT NULL,
  settle_class bigint NOT NULL,
  n bigint NOT NULL,
  amount bigint NOT NULL,
  settled_amount bigint NOT NULL,
  CONSTRAINT disbursement_change_pkey PRIMARY KEY (merchant_id, id)
);

CREATE TABLE payment_figure (
  merchant_id integer NOT NULL,
  -- 1 or 24. A number: row-level security keeps indexes from being searched by an enum.
  hours integer NOT NULL,
  start timestamptz(3) NOT NULL,
  kind payment_kind NOT NULL,
  payment_method provider NOT NULL,
  status transaction_status NOT NULL,
  failure_reason text NOT NULL,
  n bigint NOT NULL,
  amount bigint NOT NULL,
  settled_amount bigint NOT NULL,
  CONSTRAINT payment_figure_pkey PRIMARY KEY (merchant_id, hours, start, kind, payment_method, status,
    failure_reason)
);

CREATE TABLE settle_time (
  merchant_id integer NOT NULL,
  hours integer NOT NULL,
  start timestamptz(3) NOT NULL,
  kind payment_kind NOT NULL,
  payment_method provider NOT NULL,
  settle_class bigint NOT NULL,
  n bigint NOT NULL,
  CONSTRAINT settle_time_pkey PRIMARY KEY (merchant_id, hours, start, kind, payment_method, settle_class)
);

-- The payments by one link.
CREATE TABLE link_figure (
  merchant_id integer NOT NULL,
  payment_link_id integer NOT NULL,
  status transaction_status NOT NULL,
  settle_class bigint NOT NULL,
  n bigint NOT NULL,
  amount bigint NOT NULL,
  settled_amount bigint NOT NULL,
  CONSTRAINT link_figure_pkey PRIMARY KEY (merchant_id, payment_link_id, status, settle_class)
);

DO $$
DECLARE
  isolated text;
BEGIN
  FOREACH isolated IN ARRAY ARRAY['disbursement_change', 'payment_figure', 'settle_time', 'link_figure'] LOOP
    EXECUTE format('GRANT SELECT ON %I TO payments_merchant, payments_service', isolated);
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', isolated);
    EXECUTE format('CREATE POLICY "every_row" ON %I TO payments_owner USING (true)', isolated);
    EXECUTE format('CREATE POLICY "every_merchant" ON %I TO payments_service USING (true)', isolated);
    EXECUTE format('CREATE POLICY "tenant_isolation" ON %I TO payments_merchant USING (merchant_id =
      (SELECT nullif(current_setting(''app.merchant'', true), '''')::int))', isolated);
  END LOOP;
END $$;

-- The payments that exist already. Changes of transactions that are not yet added to the counts are
-- subtracted: they are added with the next ones.
LOCK TABLE transaction, payout, batch_recipient IN SHARE ROW EXCLUSIVE MODE;
CREATE TEMPORARY TABLE settle_step ON COMMIT DROP AS
SELECT DISTINCT step * (10 ^ scale)::bigint AS ms FROM generate_series(0, 12) AS scale,
  unnest('{10,11,12,13,15,16,18,20,22,24,27,30,33,36,39,43,47,51,56,62,68,75,82,91}'::bigint[]) AS step;
CREATE UNIQUE INDEX ON settle_step (ms);
CREATE TEMPORARY TABLE figure ON COMMIT DROP AS
SELECT p.merchant_id, s.hours, date_bin(s.hours * interval '1 hour', p.at, '2000-01-01 UTC') AS start, p.kind,
  p.payment_method, p.status, p.failure_reason, p.payment_link_id,
  coalesce((SELECT min(ms) FROM settle_step WHERE ms >= p.settle_ms), 0) AS settle_class, sum(p.n) AS n,
  sum(p.amount) AS amount, sum(p.settled_amount) AS settled_amount
FROM (
  SELECT t.merchant_id, t.created_at AS at, t.transaction_type::text::payment_kind AS kind, t.payment_method,
    t.status, coalesce(t.failure_reason, '') AS failure_reason, t.payment_link_id,
    CASE WHEN t.status = 'success'
      THEN greatest(extract(epoch FROM t.settled_at - t.created_at) * 1000, 0)::bigint END AS settle_ms,
    1 AS n, t.amount, coalesce(t.settled_amount, 0) AS settled_amount
  FROM transaction t WHERE t.transaction_type <> 'balance_check'
  UNION ALL
  SELECT c.merchant_id, c.hour, c.transaction_type::text::payment_kind, c.payment_method, c.status,
    c.failure_reason, c.payment_link_id, nullif(c.settle_class, 0), -c.n, -c.amount, -c.settled_amount
  FROM transaction_count_change c WHERE c.transaction_type <> 'balance_check'
  UNION ALL
  SELECT p.merchant_id, p.created_at, 'payout', p.payment_method,
    CASE WHEN p.reversed_at IS NOT NULL THEN 'reversed' WHEN p.status = 'completed' THEN 'success'
      ELSE p.status::text END::transaction_status, coalesce(p.failure_reason, ''), NULL,
    CASE WHEN p.status = 'completed' AND p.reversed_at IS NULL
      THEN greatest(extract(epoch FROM p.settled_at - p.send_at) * 1000, 0)::bigint END, 1, p.amount,
    coalesce(p.settled_amount, 0)
  FROM payout p
  UNION ALL
  SELECT r.merchant_id, r.sent_at, 'recipient', r.payment_method,
    CASE WHEN r.reversed_at IS NOT NULL THEN 'reversed' ELSE r.status::text END::transaction_status,
    coalesce(r.failure_reason, ''), NULL,
    CASE WHEN r.status = 'success' AND r.reversed_at IS NULL
      THEN greatest(extract(epoch FROM r.settled_at - r.sent_at) * 1000, 0)::bigint END, 1, r.amount,
    coalesce(r.settled_amount, 0)
  FROM batch_recipient r WHERE r.sent_at IS NOT NULL
) AS p CROSS JOIN (VALUES (1), (24)) AS s (hours)
GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9;
INSERT INTO payment_figure
SELECT merchant_id, hours, start, kind, payment_method, status, failure_reason, sum(n), sum(amount),
  sum(settled_amount)
FROM figure GROUP BY 1, 2, 3, 4, 5, 6, 7;
INSERT INTO settle_time
SELECT merchant_id, hours, start, kind, payment_method, settle_class, sum(n)
FROM figure WHERE settle_class > 0 GROUP BY 1, 2, 3, 4, 5, 6;
INSERT INTO link_figure
SELECT merchant_id, payment_link_id, status, settle_class, sum(n), sum(amount), sum(settled_amount)
FROM figure WHERE payment_link_id IS NOT NULL AND hours = 24 GROUP BY 1, 2, 3, 4;
