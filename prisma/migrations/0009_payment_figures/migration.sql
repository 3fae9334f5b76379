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

-- Says when the figures were filled from the payments that existed already; empty until then. The fill comes
-- after the functions, because nodes of the previous release go on until the triggers are there: see
-- `fillPaymentFigures`.
CREATE TABLE _payment_figure_fill (
  filled_at timestamptz(3) NOT NULL
);
