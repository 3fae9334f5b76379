/** The tables and statements of the limits, written by hand: each is the least that does the work. */

/** A payment and its outbox row: the unique reference, the foreign key, the bound, the list's index. */
export const collecting = {
  tables: `
  CREATE TABLE limit_payment (
    id bigserial PRIMARY KEY, merchant_id int NOT NULL REFERENCES merchant (id),
    transaction_type transaction_type NOT NULL, payment_method provider NOT NULL,
    customer_phone text NOT NULL,
    amount bigint NOT NULL CHECK (amount >= 100), status transaction_status NOT NULL, reference text NOT NULL,
    request_data jsonb NOT NULL, expires_at timestamptz(3), created_at timestamptz(3) NOT NULL,
    UNIQUE (reference, merchant_id), UNIQUE (merchant_id, id));
  CREATE TABLE limit_outbox (
    id bigserial PRIMARY KEY, merchant_id int NOT NULL, payment_id bigint NOT NULL, data jsonb NOT NULL,
    created_at timestamptz(3) NOT NULL)`,
  collect: `
  WITH made AS (
    INSERT INTO limit_payment (merchant_id, transaction_type, payment_method, customer_phone, amount, status,
      reference, request_data, expires_at, created_at)
    VALUES ($1, 'pay', $2, $3, $4, 'pending', $5, $6, now() + interval '24 hours', now())
    ON CONFLICT (reference, merchant_id) DO NOTHING
    RETURNING id, created_at
  ), told AS (
    INSERT INTO limit_outbox (merchant_id, payment_id, data, created_at)
    SELECT $1, id, $6, created_at FROM made
  )
  SELECT id, created_at FROM made`,
}

/** A commit sets the money aside; after the operator's answer another one settles. */
export const depositing = {
  tables: `
  CREATE TABLE limit_balance (
    merchant_id int PRIMARY KEY REFERENCES merchant (id), available bigint NOT NULL CHECK (available >= 0),
    reserved bigint NOT NULL CHECK (reserved >= 0));
  CREATE TABLE limit_deposit (
    id bigserial PRIMARY KEY, merchant_id int NOT NULL REFERENCES merchant (id),
    payment_method provider NOT NULL, customer_phone text NOT NULL,
    amount bigint NOT NULL CHECK (amount >= 1000), status transaction_status NOT NULL,
    reference text NOT NULL, correlation_id uuid NOT NULL, request_data jsonb NOT NULL,
    operator_reference text, created_at timestamptz(3) NOT NULL,
    UNIQUE (reference, merchant_id), UNIQUE (merchant_id, id));
  CREATE TABLE limit_entry (
    id bigserial PRIMARY KEY, merchant_id int NOT NULL, deposit_id bigint NOT NULL, step ledger_step NOT NULL,
    amount bigint NOT NULL, created_at timestamptz(3) NOT NULL, UNIQUE (deposit_id, step));
  CREATE TABLE limit_outbox (
    id bigserial PRIMARY KEY, merchant_id int NOT NULL, deposit_id bigint NOT NULL, data jsonb NOT NULL,
    created_at timestamptz(3) NOT NULL);
  INSERT INTO limit_balance SELECT id, 900000000000, 0 FROM merchant`,
  reserve: `
  WITH covered AS (
    UPDATE limit_balance SET available = available - $4, reserved = reserved + $4
    WHERE merchant_id = $1 AND available >= $4 RETURNING merchant_id
  ), made AS (
    INSERT INTO limit_deposit (merchant_id, payment_method, customer_phone, amount, status, reference,
      correlation_id, request_data, created_at)
    SELECT merchant_id, $2, $3, $4, 'processing', $5, $6, $7, now() FROM covered
    RETURNING id, created_at
  ), moved AS (
    INSERT INTO limit_entry (merchant_id, deposit_id, step, amount, created_at)
    SELECT $1, id, 'reserve', $4, created_at FROM made
  ), told AS (
    INSERT INTO limit_outbox (merchant_id, deposit_id, data, created_at)
    SELECT $1, id, $7, created_at FROM made
  )
  SELECT id, created_at FROM made`,
  settle: `
  WITH ended AS (
    UPDATE limit_deposit SET status = 'success', operator_reference = $2
    WHERE id = $1 AND status = 'processing' RETURNING id, merchant_id, amount, request_data
  ), paid AS (
    UPDATE limit_balance b SET reserved = b.reserved - e.amount FROM ended e
    WHERE b.merchant_id = e.merchant_id
  ), moved AS (
    INSERT INTO limit_entry (merchant_id, deposit_id, step, amount, created_at)
    SELECT merchant_id, id, 'post', amount, now() FROM ended
  )
  INSERT INTO limit_outbox (merchant_id, deposit_id, data, created_at)
  SELECT merchant_id, id, request_data, now() FROM ended`,
}

/** One call of one PL/pgSQL function: the status by compare-and-set, the balance, the movement, the event. */
export const settling = {
  tables: `
  CREATE TABLE limit_sale (
    id bigserial PRIMARY KEY, merchant_id int NOT NULL, amount bigint NOT NULL,
    status transaction_status NOT NULL, reference text NOT NULL, settled_at timestamptz(3))
    WITH (fillfactor = 80);
  CREATE TABLE limit_balance (
    merchant_id int PRIMARY KEY, available bigint NOT NULL CHECK (available >= 0)) WITH (fillfactor = 50);
  CREATE TABLE limit_entry (
    id bigserial PRIMARY KEY, merchant_id int NOT NULL, origin text NOT NULL UNIQUE,
    debit ledger_account NOT NULL, credit ledger_account NOT NULL, amount bigint NOT NULL CHECK (amount > 0),
    balance_after bigint NOT NULL,
    created_at timestamptz(3) NOT NULL);
  CREATE INDEX ON limit_entry (merchant_id, id);
  CREATE TABLE limit_event (
    id bigserial PRIMARY KEY, merchant_id int NOT NULL, data jsonb NOT NULL,
    created_at timestamptz(3) NOT NULL);
  INSERT INTO limit_balance SELECT id, 0 FROM merchant;
  CREATE FUNCTION limit_settle(sale bigint) RETURNS boolean LANGUAGE plpgsql AS $$
  DECLARE
    paid limit_sale;
    balance bigint;
  BEGIN
    UPDATE limit_sale SET status = 'success', settled_at = now()
    WHERE id = sale AND status = 'pending' RETURNING * INTO paid;
    IF NOT FOUND THEN RETURN false; END IF;
    UPDATE limit_balance SET available = available + paid.amount
    WHERE merchant_id = paid.merchant_id RETURNING available INTO balance;
    INSERT INTO limit_entry (merchant_id, origin, debit, credit, amount, balance_after, created_at)
    VALUES (paid.merchant_id, 'sale:' || paid.id, 'clearing_operator_a', 'available', paid.amount, balance,
      now());
    INSERT INTO limit_event (merchant_id, data, created_at) VALUES (paid.merchant_id, jsonb_build_object(
      'id', paid.id, 'reference', paid.reference, 'amount', paid.amount, 'status', paid.status), now());
    RETURN true;
  END $$`,
  settle: `SELECT limit_settle($1) AS moved`,
}

/** One statement takes 32 that are due and sets their money aside; one more settles each answer. */
export const payingOut = {
  tables: `
  CREATE TABLE limit_payout_balance (
    merchant_id int PRIMARY KEY REFERENCES merchant (id), available bigint NOT NULL CHECK (available >= 0),
    reserved bigint NOT NULL CHECK (reserved >= 0));
  CREATE TABLE limit_payout (
    id bigserial PRIMARY KEY, merchant_id int NOT NULL REFERENCES merchant (id), phone text NOT NULL,
    amount bigint NOT NULL, status payout_status NOT NULL, reference text NOT NULL,
    correlation_id uuid NOT NULL, operator_reference text, send_at timestamptz(3) NOT NULL,
    UNIQUE (reference, merchant_id));
  CREATE INDEX ON limit_payout (send_at, id) WHERE status = 'pending';
  CREATE TABLE limit_payout_entry (
    id bigserial PRIMARY KEY, merchant_id int NOT NULL, payout_id bigint NOT NULL, step ledger_step NOT NULL,
    amount bigint NOT NULL, created_at timestamptz(3) NOT NULL, UNIQUE (payout_id, step));
  CREATE TABLE limit_payout_outbox (
    id bigserial PRIMARY KEY, merchant_id int NOT NULL, payout_id bigint NOT NULL,
    status payout_status NOT NULL, created_at timestamptz(3) NOT NULL);
  INSERT INTO limit_payout_balance SELECT id, 900000000000, 0 FROM merchant`,
  take: `
  WITH due AS (
    SELECT id FROM limit_payout WHERE status = 'pending' AND send_at <= now()
    ORDER BY send_at, id LIMIT 32 FOR UPDATE SKIP LOCKED
  ), begun AS (
    UPDATE limit_payout p SET status = 'processing' FROM due WHERE p.id = due.id RETURNING p.*
  ), held AS (
    UPDATE limit_payout_balance b SET available = b.available - s.sum, reserved = b.reserved + s.sum
    FROM (SELECT merchant_id, sum(amount)::bigint AS sum FROM begun GROUP BY merchant_id) s
    WHERE b.merchant_id = s.merchant_id
  ), moved AS (
    INSERT INTO limit_payout_entry (merchant_id, payout_id, step, amount, created_at)
    SELECT merchant_id, id, 'reserve', amount, now() FROM begun
  ), told AS (
    INSERT INTO limit_payout_outbox (merchant_id, payout_id, status, created_at)
    SELECT merchant_id, id, status, now() FROM begun
  )
  SELECT id, correlation_id AS name, amount::int, phone FROM begun`,
  settle: `
  WITH ended AS (
    UPDATE limit_payout SET status = 'completed', operator_reference = $2
    WHERE id = $1 AND status = 'processing' RETURNING id, merchant_id, amount, status
  ), paid AS (
    UPDATE limit_payout_balance b SET reserved = b.reserved - e.amount FROM ended e
    WHERE b.merchant_id = e.merchant_id
  ), moved AS (
    INSERT INTO limit_payout_entry (merchant_id, payout_id, step, amount, created_at)
    SELECT merchant_id, id, 'post', amount, now() FROM ended
  )
  INSERT INTO limit_payout_outbox (merchant_id, payout_id, status, created_at)
  SELECT merchant_id, id, status, now() FROM ended`,
}

/** The answers of many calls are noted together. No ledger, no intent before the call, no event. */
export const payingBatch = {
  tables: `
  CREATE TABLE limit_recipient (
    id bigserial PRIMARY KEY, phone text NOT NULL, amount bigint NOT NULL, correlation_id uuid NOT NULL,
    status recipient_status NOT NULL DEFAULT 'pending', operator_reference text)`,
  read: `
    SELECT id, correlation_id AS name, amount::int, phone FROM limit_recipient WHERE status = 'pending'
    ORDER BY id LIMIT 10000`,
  note: `
    UPDATE limit_recipient r SET status = 'success', operator_reference = p.reference
    FROM unnest($1::bigint[], $2::text[]) AS p (id, reference) WHERE r.id = p.id`,
}

/** The attempt of a delivery is a row. Nothing is looked up, and nothing else is kept. */
export const delivering = {
  tables: `
    CREATE TABLE limit_webhook_attempt (
      id bigserial PRIMARY KEY, event_id bigint NOT NULL, status_code smallint, duration_ms int NOT NULL,
      answer text NOT NULL, at timestamptz(3) NOT NULL)`,
  note: `
    INSERT INTO limit_webhook_attempt (event_id, status_code, duration_ms, answer, at)
    VALUES ($1, $2, $3, $4, $5)`,
}

/** One statement gives each whole answer as text. */
export const nesting = {
  transactions: `
  SELECT json_build_object('data', json_build_object('transactions', json_build_object(
    'totalCount', (SELECT sum(n) FROM (
      SELECT n FROM transaction_count WHERE merchant_id = $1
      UNION ALL SELECT n FROM transaction_count_change WHERE merchant_id = $1) AS counted),
    'nodes', (SELECT json_agg(json_build_object('databaseId', id, 'reference', reference, 'status', status,
        'paymentMethod', payment_method, 'amount', amount, 'customerPhone', customer_phone,
        'createdAt', created_at))
      FROM (SELECT * FROM transaction WHERE merchant_id = $1 ORDER BY id DESC LIMIT 50) AS page)
  )))::text AS answer`,
  batches: `
  SELECT json_build_object('data', json_build_object('batches', json_build_object(
    'totalCount', (SELECT count(*) FROM batch WHERE merchant_id = $1),
    'nodes', (SELECT json_agg(json_build_object('databaseId', id, 'title', title, 'status', status,
        'recipientCount', recipient_count, 'totalAmount', total_amount,
        'recipients', json_build_object(
          'totalCount', recipient_count,
          'nodes', (SELECT json_agg(json_build_object(
              'databaseId', r.id, 'name', r.name, 'account', r.account,
              'amount', r.amount, 'paymentMethod', r.payment_method, 'status', r.status))
            FROM (
              SELECT * FROM batch_recipient WHERE batch_id = page.id ORDER BY id DESC LIMIT 50
            ) AS r))))
      FROM (SELECT * FROM batch WHERE merchant_id = $1 ORDER BY id DESC LIMIT 20) AS page)
  )))::text AS answer`,
}
