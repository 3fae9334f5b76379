CREATE FUNCTION batch_of(cause text) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN cause LIKE 'batch:_%' AND length(cause) <= 16 AND translate(substr(cause, 7), '0123456789', '') = ''
    THEN CASE WHEN substr(cause, 7)::bigint <= 2147483647 THEN substr(cause, 7)::int END END
$$;

-- Proves what batches paid, and leaves it out where single payments are proven.
CREATE FUNCTION audit_batches(whole boolean) RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_custom_plan SET jit = off
SET work_mem = '64MB' SET enable_seqscan = on AS $$
#variable_conflict use_column
DECLARE
  since audit_point := (SELECT p FROM audit_point p WHERE NOT whole);
  since_movement bigint := coalesce(since.movement_id, 0);
  since_event bigint := coalesce(since.event_id, 0);
  before_event bigint := coalesce(since.event_id_before, 0);
  all_of_it boolean := since IS NULL;
  touched int[];
  causes text[];
BEGIN
  IF NOT all_of_it THEN
    touched := ARRAY(
      SELECT (e.data->>'batch_id')::int FROM event e WHERE e.id > since_event AND e.data ? 'batch_id'
      UNION SELECT batch_of(m.cause) FROM movement m WHERE m.id > since_movement AND m.cause LIKE 'batch:%'
      UNION SELECT r.batch_id FROM movement m JOIN batch_recipient r ON r.id = recipient_of(m.cause)
        WHERE m.id > since_movement AND m.cause LIKE 'recipient:%');
    causes := ARRAY(
      SELECT 'batch:' || id FROM unnest(touched) AS id
      UNION ALL SELECT 'recipient:' || r.id FROM batch_recipient r WHERE r.batch_id = ANY (touched));
  END IF;

  RETURN QUERY
  WITH found AS (
    SELECT r.batch_id, min(r.merchant_id) AS merchant_id, max(r.merchant_id) AS merchant_id_too, count(*) AS n, sum(r.amount) AS total,
      count(*) FILTER (WHERE r.status = 'processing') AS processing, count(*) FILTER (WHERE r.status = 'success') AS succeeded,
      count(*) FILTER (WHERE r.status = 'failed') AS failed, count(*) FILTER (WHERE r.status = 'cancelled') AS cancelled,
      coalesce(sum(r.settled_amount), 0) AS paid,
      coalesce(sum(r.settled_amount) FILTER (WHERE r.reversed_at IS NOT NULL), 0) AS returned
    FROM batch_recipient r WHERE all_of_it OR r.batch_id = ANY (touched) GROUP BY r.batch_id
  )
  SELECT 'batches_are_counted', b.merchant_id, format('batch:%s counts %s, and its recipients are %s', b.id,
    (b.recipient_count, b.total_amount, b.processing_count, b.succeeded_count, b.failed_count, b.cancelled_count, b.paid_amount,
      b.returned_amount), (f.n, f.total, f.processing, f.succeeded, f.failed, f.cancelled, f.paid, f.returned))
  FROM batch b LEFT JOIN found f ON f.batch_id = b.id
  WHERE (all_of_it OR b.id = ANY (touched))
    AND ((b.merchant_id, b.merchant_id, b.recipient_count, b.total_amount, b.processing_count, b.succeeded_count, b.failed_count,
        b.cancelled_count, b.paid_amount, b.returned_amount)
      IS DISTINCT FROM (coalesce(f.merchant_id, b.merchant_id), coalesce(f.merchant_id_too, b.merchant_id), coalesce(f.n, 0),
        coalesce(f.total, 0), coalesce(f.processing, 0), coalesce(f.succeeded, 0), coalesce(f.failed, 0), coalesce(f.cancelled, 0),
        coalesce(f.paid, 0), coalesce(f.returned, 0)));

  -- All of a batch is set aside in one movement, none of a draft; what is cancelled of it is given back in one.
  RETURN QUERY
  WITH moved AS (
    SELECT m.cause, min(m.merchant_id) AS merchant_id, max(m.merchant_id) AS merchant_id_too,
      sum(m.amount) FILTER (WHERE m.step = 'reserve') AS reserved, sum(m.amount) FILTER (WHERE m.step = 'void') AS voided,
      count(*) FILTER (WHERE m.step NOT IN ('reserve', 'void')) AS others
    FROM movement m WHERE m.cause LIKE 'batch:%' AND (all_of_it OR m.cause = ANY (causes)) GROUP BY m.cause
  ), due AS (
    SELECT 'batch:' || b.id AS cause, b.merchant_id, b.total_amount, b.status, b.started_at IS NOT NULL AS started,
      b.approval <> 'not_required' AS asked,
      (SELECT sum(r.amount) FROM batch_recipient r WHERE r.batch_id = b.id AND r.status = 'cancelled') AS cancelled
    FROM batch b WHERE all_of_it OR b.id = ANY (touched)
  )
  SELECT 'batches_end_once', coalesce(d.merchant_id, m.merchant_id), format('%s over %s is %s: set aside %s, given back %s, cancelled %s',
    coalesce(d.cause, m.cause), d.total_amount, d.status, m.reserved, m.voided, d.cancelled)
  FROM due d FULL JOIN moved m USING (cause)
  WHERE d.cause IS NULL OR CASE WHEN d.started OR d.asked
    THEN (m.merchant_id, m.merchant_id_too, m.reserved, m.voided, m.others)
      IS DISTINCT FROM (d.merchant_id, d.merchant_id, d.total_amount, d.cancelled, 0)
    ELSE m.cause IS NOT NULL END;

  RETURN QUERY
  WITH money AS (
    SELECT m.cause, min(m.merchant_id) AS merchant_id, max(m.merchant_id) AS merchant_id_too,
      sum(m.amount) FILTER (WHERE m.step = 'post') AS posted, sum(m.amount) FILTER (WHERE m.step = 'release') AS released,
      sum(m.amount) FILTER (WHERE m.step = 'void') AS voided, sum(m.amount) FILTER (WHERE m.step = 'reverse') AS reversed,
      count(*) FILTER (WHERE m.step NOT IN ('post', 'release', 'void', 'reverse')) AS others,
      min(CASE m.step WHEN 'post' THEN m.credit WHEN 'reverse' THEN m.debit END) AS account,
      max(CASE m.step WHEN 'post' THEN m.credit WHEN 'reverse' THEN m.debit END) AS account_too
    FROM movement m WHERE m.cause LIKE 'recipient:%' AND (all_of_it OR m.cause = ANY (causes)) GROUP BY m.cause
  ), due AS (
    SELECT 'recipient:' || r.id AS cause, r.* FROM batch_recipient r WHERE all_of_it OR r.batch_id = ANY (touched)
  )
  SELECT 'batches_end_once', coalesce(d.merchant_id, m.merchant_id), format('%s over %s is %s: paid %s, given back %s, returned %s',
    coalesce(d.cause, m.cause), d.amount, d.status, m.posted, coalesce(m.released, 0) + coalesce(m.voided, 0), m.reversed)
  FROM due d FULL JOIN money m USING (cause)
  WHERE d.cause IS NULL OR CASE WHEN d.status IN ('success', 'failed')
    THEN (m.merchant_id, m.merchant_id_too, m.posted, coalesce(m.released, 0), m.voided, m.reversed, m.others)
        IS DISTINCT FROM (d.merchant_id, d.merchant_id, d.settled_amount, coalesce(d.amount - d.settled_amount, 0),
          CASE d.status WHEN 'failed' THEN d.amount END, CASE WHEN d.reversed_at IS NOT NULL THEN d.settled_amount END, 0)
      OR d.status = 'success' AND (m.account, m.account_too)
        IS DISTINCT FROM (clearing_account(d.payment_method), clearing_account(d.payment_method))
    ELSE m.cause IS NOT NULL END;

  -- The whole story of a batch that was made since the point is after it as well.
  RETURN QUERY
  WITH told AS (
    SELECT (e.data->>'batch_id')::int AS batch_id, min(e.merchant_id) AS merchant_id, max(e.merchant_id) AS merchant_id_too,
      count(*) FILTER (WHERE e.type = 'batch_draft' AND NOT e.data ? 'previous_status') AS made,
      count(*) FILTER (WHERE e.type = 'batch_pending_approval') AS asked,
      count(*) FILTER (WHERE e.type = 'batch_processing') AS started,
      count(*) FILTER (WHERE e.type = 'bulk_pay_done') AS done,
      count(*) FILTER (WHERE e.type = 'batch_cancelled') AS cancelled,
      coalesce(sum((e.data->>'amount')::bigint) FILTER (WHERE e.type = 'recipient_reversed'), 0) AS returned,
      max(e.data::text) FILTER (WHERE e.type IN ('bulk_pay_done', 'batch_cancelled')) AS last
    FROM event e
    WHERE e.id > since_event AND (e.type LIKE 'batch\_%' OR e.type IN ('bulk_pay_done', 'recipient_reversed')) GROUP BY 1
  ), due AS (
    SELECT b.*, 1 AS made_n, (b.approval <> 'not_required')::int AS asked_n, (b.started_at IS NOT NULL)::int AS started_n,
      (b.processed_at IS NOT NULL AND b.started_at IS NOT NULL)::int AS done_n,
      (b.processed_at IS NOT NULL AND b.started_at IS NULL)::int AS cancelled_n
    FROM batch b WHERE all_of_it OR b.id = ANY (touched)
  )
  SELECT 'events_tell_every_change', coalesce(b.merchant_id, t.merchant_id), CASE
    WHEN b.id IS NULL THEN format('events tell of batch:%s, which is not there', t.batch_id)
    ELSE format('its events do not tell how batch:%s became %s', b.id, b.status) END
  FROM due b FULL JOIN told t ON t.batch_id = b.id
  WHERE CASE WHEN t.batch_id IS NULL THEN all_of_it ELSE
    (t.merchant_id, t.merchant_id_too) IS DISTINCT FROM (b.merchant_id, b.merchant_id)
    OR CASE WHEN all_of_it OR t.made > 0
      THEN (t.made, t.asked, t.started, t.done, t.cancelled, t.returned)
        <> (b.made_n, b.asked_n, b.started_n, b.done_n, b.cancelled_n, b.returned_amount)
      ELSE t.asked > b.asked_n OR t.started > b.started_n OR t.done > b.done_n OR t.cancelled > b.cancelled_n
        OR t.returned > b.returned_amount END
    OR t.done + t.cancelled = 1 AND (t.last::jsonb->>'status', t.last::jsonb->>'succeeded_count', t.last::jsonb->>'failed_count',
        t.last::jsonb->>'cancelled_count', t.last::jsonb->>'paid_amount')
      IS DISTINCT FROM (b.status::text, b.succeeded_count::text, b.failed_count::text, b.cancelled_count::text, b.paid_amount::text)
    END
  UNION ALL
  -- What moved since the point was told of, also of batches that are older.
  SELECT 'events_tell_every_change', m.merchant_id, format('no event tells of the %s of %s', m.step, m.cause)
  FROM (
    SELECT m.merchant_id, m.step, m.cause, b.id AS batch_id, CASE WHEN m.step = 'reserve' THEN 'begun'
      WHEN m.step = 'reverse' THEN m.cause WHEN b.processed_at = m.created_at THEN 'ended' ELSE 'moved' END AS what
    FROM movement m LEFT JOIN batch_recipient r ON r.id = recipient_of(m.cause)
      LEFT JOIN batch b ON b.id = coalesce(batch_of(m.cause), r.batch_id)
    WHERE NOT all_of_it AND m.id > since_movement AND (m.cause LIKE 'batch:%' OR m.cause LIKE 'recipient:%')
  ) AS m LEFT JOIN (
    SELECT DISTINCT (e.data->>'batch_id')::int AS batch_id, w.what
    FROM event e CROSS JOIN LATERAL (VALUES
      (CASE WHEN e.type IN ('batch_processing', 'batch_pending_approval') THEN 'begun' END),
      (CASE WHEN e.type IN ('bulk_pay_done', 'batch_cancelled') THEN 'ended' END),
      (CASE WHEN e.type IN ('bulk_pay_done', 'batch_cancelled', 'batch_progress') THEN 'moved' END),
      (CASE WHEN e.type = 'recipient_reversed' THEN 'recipient:' || (e.data->>'recipient_id') END)
    ) AS w (what)
    WHERE NOT all_of_it AND e.id > before_event AND w.what IS NOT NULL
      AND (e.type LIKE 'batch\_%' OR e.type IN ('bulk_pay_done', 'recipient_reversed'))
  ) AS t ON t.batch_id = m.batch_id AND t.what = m.what
  WHERE t.what IS NULL AND m.batch_id IS NOT NULL;

  RETURN QUERY
  SELECT 'movements_have_one_cause', m.merchant_id, format('%s for %s, which is none of their batches or recipients', m.step, m.cause)
  FROM movement m LEFT JOIN batch_recipient r ON r.id = recipient_of(m.cause)
    LEFT JOIN batch b ON b.id = coalesce(batch_of(m.cause), r.batch_id)
  WHERE m.id > since_movement AND (m.cause LIKE 'batch:%' OR m.cause LIKE 'recipient:%')
    AND b.merchant_id IS DISTINCT FROM m.merchant_id;

  RETURN QUERY
  SELECT 'statuses_agree_with_requests', coalesce(d.merchant_id, r.merchant_id), format('recipient:%s is %s, and %s',
    coalesce(d.id, r.recipient_id), d.status,
    CASE WHEN r.id IS NULL THEN 'nothing was asked of the operator' ELSE format('its request over %s by %s is %s, asked about %s',
      r.amount, r.provider, r.state, coalesce(r.next_check_at::text, 'no more')) END)
  FROM (SELECT * FROM batch_recipient d WHERE all_of_it OR d.batch_id = ANY (touched)) AS d
  FULL JOIN (
    SELECT r.* FROM operator_request r WHERE r.recipient_id IS NOT NULL AND (all_of_it OR r.recipient_id IN (
      SELECT d.id FROM batch_recipient d WHERE d.batch_id = ANY (touched)))
  ) AS r ON r.recipient_id = d.id
  WHERE CASE WHEN r.id IS NULL THEN d.status NOT IN ('pending', 'cancelled') WHEN d.id IS NULL THEN true ELSE
    (r.merchant_id = d.merchant_id AND r.amount = d.amount AND r.provider = d.payment_method AND r.phone = d.account
      AND r.kind = 'disburse' AND CASE d.status
        WHEN 'success' THEN r.state = 'settled'
        WHEN 'failed' THEN r.state IN ('refused', 'closed')
        -- Not decided: then somebody will ask.
        WHEN 'processing' THEN r.state IN ('sending', 'unsent', 'accepted', 'doubt') AND r.next_check_at IS NOT NULL
        ELSE false END) IS NOT TRUE END;

  -- Of what people approve nothing changes; the bounds of the table see to it that they did.
  RETURN QUERY
  SELECT 'approvals_cover_what_is_paid', b.merchant_id, format('batch:%s is not what was to be approved', b.id)
  FROM batch b
  WHERE b.approval_digest IS NOT NULL AND (all_of_it OR b.id = ANY (touched)) AND b.approval_digest IS DISTINCT FROM batch_digest(b);
END $$;

-- As before, but for the movements and requests of batches.
CREATE OR REPLACE FUNCTION audit_books(whole boolean)
 RETURNS TABLE(invariant text, merchant_id integer, problem text)
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET plan_cache_mode TO 'force_custom_plan'
 SET jit TO 'off'
 SET work_mem TO '64MB'
 SET enable_seqscan TO 'on'
AS $$
#variable_conflict use_column
DECLARE
  since audit_point := (SELECT p FROM audit_point p WHERE NOT whole);
  since_movement bigint := coalesce(since.movement_id, 0);
  since_event bigint := coalesce(since.event_id, 0);
  before_event bigint := coalesce(since.event_id_before, 0);
  all_of_it boolean := since IS NULL;
  touched bigint[];
  causes text[];
  changes text[] := ARRAY(
    SELECT event_of('pending') UNION SELECT event_of(m.to_status) FROM lifecycle_move m WHERE m.lifecycle = 'transaction');
BEGIN
  IF NOT all_of_it THEN
    touched := ARRAY(
      SELECT (e.data->>'transaction_id')::bigint FROM event e WHERE e.id > since_event AND e.data ? 'transaction_id'
      UNION SELECT transaction_of(m.cause) FROM movement m WHERE m.id > since_movement AND m.cause LIKE 'transaction:%');
    causes := ARRAY(SELECT 'transaction:' || id FROM unnest(touched) id);
  END IF;

  RETURN QUERY
  WITH proven AS (
    SELECT p.merchant_id, p.available, p.reserved, p.receivable FROM audit_proven p WHERE NOT all_of_it
  ), moved AS (
    SELECT m.merchant_id,
      sum(CASE 'available'::ledger_account WHEN m.credit THEN m.amount WHEN m.debit THEN -m.amount ELSE 0 END) AS available,
      sum(CASE 'reserved'::ledger_account WHEN m.credit THEN m.amount WHEN m.debit THEN -m.amount ELSE 0 END) AS reserved,
      sum(CASE 'suspense'::ledger_account WHEN m.debit THEN m.amount WHEN m.credit THEN -m.amount ELSE 0 END) AS receivable
    FROM movement m WHERE m.id > since_movement GROUP BY m.merchant_id
  ), rebuilt AS (
    SELECT merchant_id, coalesce(p.available, 0) + coalesce(m.available, 0) AS available,
      coalesce(p.reserved, 0) + coalesce(m.reserved, 0) AS reserved,
      coalesce(p.receivable, 0) + coalesce(m.receivable, 0) AS receivable
    FROM proven p FULL JOIN moved m USING (merchant_id)
  )
  SELECT 'balances_equal_movements', merchant_id, CASE WHEN b.available IS NULL THEN 'has movements but no balance'
    ELSE format('balance says available %s, reserved %s%s; its movements say %s, %s%s', b.available, b.reserved,
      ', receivable ' || nullif(b.receivable, 0), coalesce(r.available, 0), coalesce(r.reserved, 0),
      ', ' || nullif(r.receivable, 0)) END
  FROM merchant_balance b FULL JOIN rebuilt r USING (merchant_id)
  WHERE (b.available, b.reserved, b.receivable)
    IS DISTINCT FROM (coalesce(r.available, 0), coalesce(r.reserved, 0), coalesce(r.receivable, 0));

  RETURN QUERY
  SELECT 'no_balance_below_zero', b.merchant_id, format('available %s, reserved %s, receivable %s', b.available, b.reserved, b.receivable)
  FROM merchant_balance b WHERE b.available < 0 OR b.reserved < 0 OR b.receivable < 0;

  RETURN QUERY
  WITH credit AS (
    SELECT m.* FROM movement m
    WHERE m.step = 'credit' AND (all_of_it OR m.id > since_movement OR m.cause = ANY (causes))
  ), paid AS (
    SELECT t.id, t.merchant_id, t.settled_amount AS amount, holder.account AS debit
    FROM transaction t JOIN (
      SELECT provider, clearing_account(provider) AS account FROM unnest(enum_range(NULL::provider)) provider OFFSET 0
    ) holder ON holder.provider = t.payment_method
    WHERE t.transaction_type = 'pay' AND t.status IN ('success', 'reversed') AND (all_of_it OR t.id = ANY (touched))
  )
  SELECT 'collections_credited_once', coalesce(p.merchant_id, c.merchant_id), CASE
    WHEN c.cause IS NULL THEN format('transaction:%s is paid but was never credited', p.id)
    WHEN p.id IS NULL THEN c.cause || ' was credited but is not paid'
    ELSE c.cause || ' was credited with another amount, account or merchant' END
  FROM paid p FULL JOIN credit c ON transaction_of(c.cause) = p.id
  WHERE (p.merchant_id, p.amount, p.debit, 'available'::ledger_account)
    IS DISTINCT FROM (c.merchant_id, c.amount, c.debit, c.credit);

  RETURN QUERY
  WITH back AS (
    SELECT m.cause, min(m.merchant_id) AS merchant_id, max(m.merchant_id) AS merchant_id_too, sum(m.amount)::bigint AS amount,
      min(m.credit) AS account, max(m.credit) AS account_too
    FROM movement m
    WHERE m.step IN ('reverse', 'shortfall') AND m.debit IN ('available', 'suspense') AND (all_of_it OR m.id > since_movement OR m.cause = ANY (causes))
    GROUP BY m.cause
  ), reversed AS (
    SELECT t.id, t.merchant_id, t.settled_amount AS amount, clearing_account(t.payment_method) AS account
    FROM transaction t
    WHERE t.transaction_type = 'pay' AND t.status = 'reversed' AND (all_of_it OR t.id = ANY (touched))
  )
  SELECT 'collections_credited_once', coalesce(r.merchant_id, b.merchant_id), CASE
    WHEN b.cause IS NULL THEN format('transaction:%s is reversed but was never given back', r.id)
    WHEN r.id IS NULL THEN b.cause || ' was given back but is not reversed'
    ELSE b.cause || ' was given back with another amount, account or merchant' END
  FROM reversed r FULL JOIN back b ON transaction_of(b.cause) = r.id
  WHERE (r.merchant_id, r.merchant_id, r.amount, r.account, r.account)
    IS DISTINCT FROM (b.merchant_id, b.merchant_id_too, b.amount, b.account, b.account_too)
    -- Or its refunds gave all of it back to the payer.
    AND NOT (b.cause IS NULL AND r.amount <= (
      SELECT coalesce(sum(g.settled_amount), 0) FROM transaction g WHERE g.refund_of_id = r.id));

  RETURN QUERY
  SELECT 'reservations_end_once', ended.merchant_id, ended.cause || ' ended otherwise than it was reserved'
  FROM movement ended LEFT JOIN movement held ON held.cause = ended.cause AND held.step = 'reserve'
    LEFT JOIN movement rest ON rest.cause = ended.cause AND rest.step = 'release' AND ended.step = 'post'
  -- What a batch set aside ends with each of its recipients: `audit_batches`.
  WHERE ended.step IN ('post', 'void') AND ended.id > since_movement AND ended.cause NOT LIKE 'recipient:%'
    AND ended.cause NOT LIKE 'batch:%' AND (ended.merchant_id, ended.amount + coalesce(rest.amount, 0), ended.debit)
      IS DISTINCT FROM (held.merchant_id, held.amount, held.credit)
  UNION ALL
  SELECT 'reservations_end_once', posted.merchant_id, posted.cause || ' was paid out and given back'
  FROM movement posted JOIN movement voided ON voided.cause = posted.cause AND voided.step = 'void'
  WHERE posted.step = 'post' AND greatest(posted.id, voided.id) > since_movement
  UNION ALL
  SELECT 'reservations_end_once', held.merchant_id, format('%s is %s, and its money still reserved', held.cause, t.status)
  FROM movement held JOIN transaction t ON t.id = transaction_of(held.cause)
  WHERE held.step = 'reserve' AND t.status NOT IN ('pending', 'processing')
    AND (all_of_it OR held.cause = ANY (causes))
    AND NOT EXISTS (SELECT FROM movement e WHERE e.cause = held.cause AND e.step IN ('post', 'void'));

  RETURN QUERY
  SELECT 'events_tell_every_change', h.merchant_id, format('positions end at %s, with %s of %s events after %s',
    h.position, found.count, h.position - found.since, found.since)
  FROM stream_head h
  LEFT JOIN (SELECT * FROM audit_proven WHERE NOT all_of_it) p USING (merchant_id)
  CROSS JOIN LATERAL (
    SELECT coalesce(p.position, 0) AS since, count(*) AS count, coalesce(max(e.position), 0) AS last
    FROM event e WHERE e.merchant_id = h.merchant_id AND e.position > coalesce(p.position, 0)
  ) found
  WHERE (all_of_it OR h.position <> coalesce(p.position, 0))
    AND (found.count <> h.position - found.since OR found.last <> h.position);

  -- A chain holds where the hashes of what was told cancel out but for the last one: each event begins where the one
  -- before it ended, none is missing, and none is told twice.
  RETURN QUERY
  WITH lawful AS MATERIALIZED (
    SELECT event_of(m.to_status) AS type, m.from_status AS was, m.to_status AS status
    FROM lifecycle_move m WHERE m.lifecycle = 'transaction'
    UNION ALL SELECT 'payment_pending', '', 'pending'
    -- The operator takes back what refunds had given back already.
    UNION ALL SELECT 'payment_reversed', 'reversed', 'reversed'
  ), told AS (
    SELECT c.transaction_id, min(c.merchant_id) AS merchant_id, max(c.merchant_id) AS merchant_id_too, min(c.id) AS first_id,
      count(*) FILTER (WHERE c.was = '') AS begun,
      bool_and(((c.type, c.was, c.status) IN (SELECT l.type, l.was, l.status FROM lawful l)) IS TRUE) AS lawful,
      sum(hashtext(c.status)::bigint - CASE c.was WHEN '' THEN 0 ELSE hashtext(c.was) END) AS net
    FROM (
      SELECT e.id, e.merchant_id, e.type, (e.data->>'transaction_id')::bigint AS transaction_id, e.data->>'status' AS status,
        coalesce(e.data->>'previous_status', '') AS was
      FROM event e WHERE e.id > since_event AND e.type = ANY (changes)
      OFFSET 0
    ) c GROUP BY c.transaction_id
  )
  SELECT 'events_tell_every_change', coalesce(t.merchant_id, told.merchant_id), CASE
    WHEN t.id IS NULL THEN format('events tell of transaction:%s, which is not there', told.transaction_id)
    ELSE format('its events do not tell how transaction:%s became %s', t.id, t.status) END
  -- What was told of it before the point ended where its first event since begins; the whole proof takes no such word.
  FROM told LEFT JOIN event first ON NOT all_of_it AND told.begun = 0 AND first.id = told.first_id FULL JOIN (
    SELECT * FROM transaction WHERE transaction_type = 'pay' AND (all_of_it OR id = ANY (touched))
  ) t ON t.id = told.transaction_id
  WHERE CASE WHEN told.transaction_id IS NULL THEN all_of_it ELSE
    (told.merchant_id, told.merchant_id_too) IS DISTINCT FROM (t.merchant_id, t.merchant_id)
    OR NOT told.lawful OR told.begun <> 1 AND (all_of_it OR told.begun <> 0)
    OR told.net + CASE told.begun WHEN 0 THEN hashtext(first.data->>'previous_status') ELSE 0 END <> hashtext(t.status::text) END
  UNION ALL
  SELECT 'events_tell_every_change', c.merchant_id, 'no event tells of the credit of ' || c.cause
  FROM movement c
  WHERE NOT all_of_it AND c.step = 'credit' AND c.id > since_movement AND NOT EXISTS (
    SELECT FROM event e WHERE e.id > before_event AND e.type = 'payment_received'
      AND (e.data->>'transaction_id')::bigint = transaction_of(c.cause));

  RETURN QUERY
  SELECT 'statuses_agree_with_requests', t.merchant_id, format('transaction:%s is %s, and %s', t.id, t.status,
    CASE WHEN r.id IS NULL THEN 'nothing was asked of the operator' ELSE format('its request over %s by %s is %s, asked about %s',
      r.amount, r.provider, r.state, coalesce(r.next_check_at::text, 'no more')) END)
  FROM transaction t
  LEFT JOIN operator_request r ON r.merchant_id = t.merchant_id AND r.transaction_id = t.id AND r.kind = 'collect'
  WHERE t.transaction_type = 'pay' AND (all_of_it OR t.id = ANY (touched))
    AND (r.amount = t.amount AND r.provider = t.payment_method AND CASE t.status
      WHEN 'success' THEN r.state = 'settled'
      WHEN 'reversed' THEN r.state = 'settled'
      WHEN 'failed' THEN r.state IN ('refused', 'closed')
      WHEN 'cancelled' THEN r.state = 'closed'
      WHEN 'expired' THEN r.state NOT IN ('settled', 'refused')
      -- Not decided: then somebody will ask.
      ELSE r.state IN ('sending', 'unsent', 'accepted', 'doubt') AND r.next_check_at IS NOT NULL END) IS NOT TRUE
  UNION ALL
  SELECT 'statuses_agree_with_requests', r.merchant_id, format('transaction:%s was asked of the operator twice', r.transaction_id)
  FROM operator_request r JOIN operator_request other
    ON other.transaction_id = r.transaction_id AND other.merchant_id = r.merchant_id AND other.kind = r.kind AND other.id < r.id
  WHERE all_of_it OR (r.merchant_id, r.transaction_id) IN (
    SELECT t.merchant_id, t.id FROM transaction t WHERE t.id = ANY (touched));

  RETURN QUERY
  SELECT 'movements_have_one_cause', m.merchant_id, format('%s has %s twice', m.cause, m.step)
  FROM movement m JOIN movement other ON other.cause = m.cause AND other.step = m.step AND other.id < m.id
  WHERE m.id > since_movement
  UNION ALL
  SELECT 'movements_have_one_cause', m.merchant_id, format('%s from %s to %s for %s: nothing of ours moves so', m.step,
    m.debit, m.credit, m.cause)
  FROM movement m LEFT JOIN transaction t ON t.id = transaction_of(m.cause)
  WHERE m.id > since_movement AND NOT (CASE m.step
    WHEN 'fund' THEN m.cause LIKE 'funding:%' AND m.debit = 'funding' AND m.credit = 'available'
    WHEN 'credit' THEN t.merchant_id = m.merchant_id AND m.credit = 'available' AND m.debit::text LIKE 'clearing\_%'
    WHEN 'reverse' THEN CASE WHEN t.transaction_type = 'pay'
      THEN t.merchant_id = m.merchant_id AND m.debit = 'available' AND m.credit::text LIKE 'clearing\_%'
      ELSE (t.merchant_id = m.merchant_id OR m.cause ~ '^(payout|batch|recipient):.') AND m.debit::text LIKE 'clearing\_%' AND m.credit = 'available' END
    WHEN 'shortfall' THEN t.merchant_id = m.merchant_id AND m.debit = 'suspense' AND m.credit::text LIKE 'clearing\_%'
    WHEN 'recover' THEN m.cause LIKE 'receivable:%' AND m.debit = 'available' AND m.credit = 'suspense'
    ELSE (t.merchant_id = m.merchant_id OR m.cause ~ '^(payout|batch|recipient):.') AND CASE m.step
      WHEN 'reserve' THEN m.debit = 'available' AND m.credit = 'reserved'
      WHEN 'post' THEN m.debit = 'reserved' AND m.credit::text LIKE 'clearing\_%'
        AND m.credit = coalesce(clearing_account(t.payment_method), m.credit)
      ELSE m.debit = 'reserved' AND m.credit = 'available' END END IS TRUE);

  RETURN QUERY
  SELECT 'references_are_unique', t.merchant_id, format('transaction:%s and transaction:%s have the same reference', other.id, t.id)
  FROM transaction t JOIN transaction other
    ON other.reference = t.reference AND other.merchant_id = t.merchant_id AND other.id < t.id
  WHERE all_of_it OR t.id = ANY (touched);
END $$;

CREATE OR REPLACE FUNCTION audit_disbursements(whole boolean)
 RETURNS TABLE(invariant text, merchant_id integer, problem text)
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET plan_cache_mode TO 'force_custom_plan'
 SET jit TO 'off'
 SET work_mem TO '64MB'
 SET enable_seqscan TO 'on'
AS $$
#variable_conflict use_column
DECLARE
  since audit_point := (SELECT p FROM audit_point p WHERE NOT whole);
  since_movement bigint := coalesce(since.movement_id, 0);
  since_event bigint := coalesce(since.event_id, 0);
  before_event bigint := coalesce(since.event_id_before, 0);
  all_of_it boolean := since IS NULL;
  touched bigint[];
  touched_payouts bigint[];
  causes text[];
BEGIN
  IF NOT all_of_it THEN
    touched := ARRAY(
      SELECT (e.data->>'transaction_id')::bigint FROM event e WHERE e.id > since_event AND e.data ? 'transaction_id'
      UNION SELECT transaction_of(m.cause) FROM movement m WHERE m.id > since_movement AND m.cause LIKE 'transaction:%');
    -- With a refund what it gives back.
    touched := touched || ARRAY(
      SELECT r.refund_of_id FROM transaction r WHERE r.id = ANY (touched) AND r.refund_of_id IS NOT NULL);
    touched_payouts := ARRAY(
      SELECT (e.data->>'payout_id')::bigint FROM event e WHERE e.id > since_event AND e.data ? 'payout_id'
      UNION SELECT payout_of(m.cause) FROM movement m WHERE m.id > since_movement AND m.cause LIKE 'payout:%');
    causes := ARRAY(
      SELECT 'transaction:' || id FROM unnest(touched) AS id UNION ALL SELECT 'payout:' || id FROM unnest(touched_payouts) AS id);
  END IF;

  -- Of a merchant that owes nothing is available.
  RETURN QUERY
  SELECT 'debts_are_paid_first', b.merchant_id, format('available %s, and %s are owed', b.available, b.receivable)
  FROM merchant_balance b WHERE b.receivable > 0 AND b.available > 0;

  RETURN QUERY
  WITH subject AS (
    SELECT 'transaction:' || t.id AS cause, t.merchant_id, t.payment_method, t.amount, t.settled_amount,
      false AS scheduled, CASE t.status WHEN 'success' THEN 'completed' ELSE t.status::text END AS status, t.status = 'reversed' AS back
    FROM transaction t WHERE t.transaction_type = 'deposit' AND (all_of_it OR t.id = ANY (touched))
    UNION ALL
    SELECT 'payout:' || p.id, p.merchant_id, p.payment_method, p.amount, p.settled_amount, p.scheduled_at IS NOT NULL,
      p.status::text, p.reversed_at IS NOT NULL
    FROM payout p WHERE all_of_it OR p.id = ANY (touched_payouts)
  ), due AS (
    -- What must have moved. What was scheduled sets nothing aside before it begins.
    SELECT s.*, clearing_account(s.payment_method) AS account, s.status IN ('completed', 'reversed') AS paid,
      s.status IN ('failed', 'cancelled') AS given_up
    FROM subject s
  ), money AS (
    SELECT m.cause, min(m.merchant_id) AS merchant_id, max(m.merchant_id) AS merchant_id_too,
      sum(m.amount) FILTER (WHERE m.step = 'reserve') AS reserved, sum(m.amount) FILTER (WHERE m.step = 'post') AS posted,
      sum(m.amount) FILTER (WHERE m.step = 'release') AS released, sum(m.amount) FILTER (WHERE m.step = 'void') AS voided,
      sum(m.amount) FILTER (WHERE m.step = 'reverse') AS reversed,
      min(CASE m.step WHEN 'post' THEN m.credit WHEN 'reverse' THEN m.debit END) AS account,
      max(CASE m.step WHEN 'post' THEN m.credit WHEN 'reverse' THEN m.debit END) AS account_too
    FROM movement m
    WHERE (m.step IN ('reserve', 'post', 'release', 'void') OR m.step = 'reverse' AND m.credit = 'available')
      AND (all_of_it OR m.cause = ANY (causes))
      AND m.cause NOT LIKE 'batch:%' AND m.cause NOT LIKE 'recipient:%'
    GROUP BY m.cause
  )
  SELECT 'disbursements_end_once', coalesce(d.merchant_id, m.merchant_id), CASE
    WHEN d.cause IS NULL THEN m.cause || ' set money aside, and is no payment out'
    ELSE format('%s over %s is %s%s: set aside %s, paid %s, given back %s, returned %s', d.cause, d.amount, d.status,
      CASE WHEN d.back THEN ', taken back' END, coalesce(m.reserved, 0), coalesce(m.posted, 0),
      coalesce(m.released, 0) + coalesce(m.voided, 0), coalesce(m.reversed, 0)) END
  FROM due d FULL JOIN money m USING (cause)
  WHERE d.cause IS NULL
    OR CASE WHEN m.cause IS NULL THEN NOT (d.scheduled AND (d.status = 'pending' OR d.given_up))
      ELSE d.scheduled AND d.status = 'pending'
        OR (m.merchant_id, m.merchant_id_too) IS DISTINCT FROM (d.merchant_id, d.merchant_id)
        OR m.reserved IS DISTINCT FROM d.amount
        OR m.posted IS DISTINCT FROM CASE WHEN d.paid THEN d.settled_amount END
        OR coalesce(m.released, 0) <> CASE WHEN d.paid THEN d.amount - d.settled_amount ELSE 0 END
        OR m.voided IS DISTINCT FROM CASE WHEN d.given_up THEN d.amount END
        OR m.reversed IS DISTINCT FROM CASE WHEN d.back THEN d.settled_amount END
        OR d.paid AND (m.account, m.account_too) IS DISTINCT FROM (d.account, d.account) END;

  RETURN QUERY
  WITH given AS (
    SELECT r.refund_of_id AS id, count(DISTINCT r.merchant_id) AS merchants, max(r.merchant_id) AS merchant_id,
      coalesce(sum(r.settled_amount) FILTER (WHERE r.status = 'success'), 0) AS done,
      coalesce(sum(r.amount) FILTER (WHERE r.status = 'processing'), 0) AS open
    FROM transaction r
    WHERE r.refund_of_id IS NOT NULL AND (all_of_it OR r.refund_of_id = ANY (touched))
    GROUP BY r.refund_of_id
  )
  SELECT 'refunds_stay_within', g.merchant_id, format('transaction:%s, %s over %s, was given back %s, and %s are on their way',
    g.id, coalesce(t.status::text, 'not there'), t.settled_amount, g.done, g.open)
  FROM given g LEFT JOIN transaction t ON t.id = g.id
  WHERE (t.transaction_type = 'pay' AND t.merchant_id = g.merchant_id AND g.merchants = 1
    AND g.done + g.open <= t.settled_amount
    AND (t.status = 'reversed' OR t.status = 'success' AND g.done < t.settled_amount)) IS NOT TRUE;

  -- A chain holds where each of its moves is lawful, none is told twice, and the hashes of what was told cancel out but for
  -- the last one.
  RETURN QUERY
  WITH lawful (type, was, status) AS MATERIALIZED (VALUES
    ('deposit_processing', '', 'processing'), ('deposit_completed', 'processing', 'success'),
    ('deposit_failed', 'processing', 'failed'), ('deposit_reversed', 'success', 'reversed'),
    ('payout_pending', '', 'pending'), ('payout_processing', 'pending', 'processing'), ('payout_failed', 'pending', 'failed'),
    ('payout_cancelled', 'pending', 'cancelled'), ('payout_completed', 'processing', 'completed'),
    ('payout_failed', 'processing', 'failed'), ('payout_reversed', 'completed', 'completed')
  ), told AS (
    SELECT c.cause, min(c.merchant_id) AS merchant_id, max(c.merchant_id) AS merchant_id_too, min(c.id) AS first_id,
      count(*) FILTER (WHERE c.was = '') AS begun, count(*) FILTER (WHERE c.type LIKE '%\_reversed') AS reversed,
      bool_and(((c.type, c.was, c.status) IN (SELECT l.type, l.was, l.status FROM lawful l)) IS TRUE)
        AND count(*) = count(DISTINCT c.type) AS lawful,
      sum(hashtext(c.status)::bigint - CASE c.was WHEN '' THEN 0 ELSE hashtext(c.was) END) AS net
    FROM (
      SELECT e.id, e.merchant_id, e.type, e.data->>'status' AS status, coalesce(e.data->>'previous_status', '') AS was,
        CASE WHEN e.type LIKE 'payout%' THEN 'payout:' || (e.data->>'payout_id')
          ELSE 'transaction:' || (e.data->>'transaction_id') END AS cause
      FROM event e WHERE e.id > since_event AND (e.type LIKE 'deposit\_%' OR e.type LIKE 'payout\_%')
      OFFSET 0
    ) c GROUP BY c.cause
  ), subject AS (
    SELECT 'transaction:' || t.id AS cause, t.merchant_id, t.status::text AS status, t.status = 'reversed' AS back
    FROM transaction t WHERE t.transaction_type = 'deposit' AND (all_of_it OR t.id = ANY (touched))
    UNION ALL
    SELECT 'payout:' || p.id, p.merchant_id, p.status::text, p.reversed_at IS NOT NULL
    FROM payout p WHERE all_of_it OR p.id = ANY (touched_payouts)
  )
  SELECT 'events_tell_every_change', coalesce(s.merchant_id, told.merchant_id), CASE
    WHEN s.cause IS NULL THEN format('events tell of %s, which is not there', told.cause)
    ELSE format('its events do not tell how %s became %s', s.cause, s.status) END
  FROM told LEFT JOIN event first ON NOT all_of_it AND told.begun = 0 AND first.id = told.first_id
    FULL JOIN subject s ON s.cause = told.cause
  WHERE CASE WHEN told.cause IS NULL THEN all_of_it ELSE
    (told.merchant_id, told.merchant_id_too) IS DISTINCT FROM (s.merchant_id, s.merchant_id)
    OR NOT told.lawful OR told.begun <> 1 AND (all_of_it OR told.begun <> 0)
    OR told.reversed <> s.back::int AND (all_of_it OR told.reversed <> 0)
    OR told.net + CASE told.begun WHEN 0 THEN hashtext(first.data->>'previous_status') ELSE 0 END <> hashtext(s.status) END
  UNION ALL
  SELECT 'events_tell_every_change', m.merchant_id, format('no event tells of the %s of %s', m.step, m.cause)
  FROM movement m
  WHERE NOT all_of_it AND m.id > since_movement AND m.step IN ('reserve', 'post', 'void', 'reverse')
    AND (m.step <> 'reverse' OR m.credit = 'available')
    AND m.cause NOT LIKE 'batch:%' AND m.cause NOT LIKE 'recipient:%'
    AND NOT EXISTS (
      SELECT FROM (
        SELECT e.type, CASE WHEN e.type LIKE 'payout%' THEN 'payout:' || (e.data->>'payout_id')
          ELSE 'transaction:' || (e.data->>'transaction_id') END AS cause
        FROM event e WHERE e.id > before_event AND (e.type LIKE 'deposit\_%' OR e.type LIKE 'payout\_%')
      ) AS e
      WHERE e.cause = m.cause AND CASE m.step WHEN 'post' THEN e.type LIKE '%\_completed'
        WHEN 'reverse' THEN e.type LIKE '%\_reversed' WHEN 'void' THEN e.type LIKE '%\_failed' OR e.type LIKE '%\_cancelled'
        ELSE e.type LIKE '%\_processing' OR e.type LIKE '%\_pending' END);

  RETURN QUERY
  WITH subject AS (
    SELECT 'transaction:' || t.id AS cause, t.id AS transaction_id, NULL::bigint AS payout_id, t.merchant_id, t.payment_method,
      t.customer_phone AS phone, t.amount, CASE t.status WHEN 'success' THEN 'completed' ELSE t.status::text END AS status
    FROM transaction t WHERE t.transaction_type = 'deposit' AND (all_of_it OR t.id = ANY (touched))
    UNION ALL
    SELECT 'payout:' || p.id, NULL, p.id, p.merchant_id, p.payment_method, p.destination_phone, p.amount, p.status::text
    FROM payout p WHERE all_of_it OR p.id = ANY (touched_payouts)
  ), asked AS (
    SELECT r.*, coalesce('payout:' || r.payout_id, 'transaction:' || r.transaction_id) AS cause
    FROM operator_request r
    WHERE r.kind = 'disburse' AND r.recipient_id IS NULL AND (all_of_it OR r.transaction_id = ANY (touched) OR r.payout_id = ANY (touched_payouts))
  )
  SELECT 'statuses_agree_with_requests', coalesce(s.merchant_id, r.merchant_id), format('%s is %s, and %s',
    coalesce(s.cause, r.cause), coalesce(s.status, 'no payment out'),
    CASE WHEN r.id IS NULL THEN 'nothing was asked of the operator' ELSE format('its request over %s by %s is %s, asked about %s',
      r.amount, r.provider, r.state, coalesce(r.next_check_at::text, 'no more')) END)
  FROM subject s FULL JOIN asked r USING (cause)
  WHERE CASE
    -- What never began never left.
    WHEN r.id IS NULL THEN s.status NOT IN ('pending', 'cancelled') AND NOT (s.status = 'failed' AND NOT EXISTS (
      SELECT FROM movement m WHERE m.cause = s.cause AND m.step = 'reserve'))
    WHEN s.cause IS NULL THEN true
    ELSE (r.merchant_id = s.merchant_id AND r.amount = s.amount AND r.provider = s.payment_method AND r.phone = s.phone
      AND CASE s.status
        WHEN 'completed' THEN r.state = 'settled'
        WHEN 'reversed' THEN r.state = 'settled'
        WHEN 'failed' THEN r.state IN ('refused', 'closed') AND EXISTS (
          SELECT FROM movement m WHERE m.cause = s.cause AND m.step = 'reserve')
        -- Not decided: then somebody will ask.
        WHEN 'processing' THEN r.state IN ('sending', 'unsent', 'accepted', 'doubt') AND r.next_check_at IS NOT NULL
        ELSE false END) IS NOT TRUE END
  UNION ALL
  SELECT 'statuses_agree_with_requests', r.merchant_id, format('transaction:%s was to be paid out, and was asked for', r.transaction_id)
  FROM operator_request r JOIN transaction t ON t.id = r.transaction_id
  WHERE r.kind = 'collect' AND t.transaction_type <> 'pay' AND (all_of_it OR r.transaction_id = ANY (touched));

  -- What a person approved is what is paid, and nothing begins without.
  RETURN QUERY
  SELECT 'approvals_cover_what_is_paid', p.merchant_id, format('payout:%s is %s, its approval %s', p.id, p.status,
    CASE WHEN p.approval = 'approved' THEN 'of something else' ELSE p.approval::text END)
  FROM payout p
  WHERE (all_of_it OR p.id = ANY (touched_payouts)) AND p.approval <> 'not_required'
    AND (p.status IN ('processing', 'completed', 'failed') AND p.approval <> 'approved'
      OR p.approval_digest IS DISTINCT FROM
        payout_digest(p.merchant_id, p.payment_method, p.destination_phone, p.amount, p.reference, p.scheduled_at));

  -- It reads every payout: with the whole proof.
  RETURN QUERY
  SELECT 'payouts_are_counted', merchant_id, format('%s %s payouts by %s are there, and %s counted', coalesce(there.n, 0), status,
    payment_method, coalesce(k.n, 0))
  FROM (SELECT k.* FROM payout_count k WHERE k.n <> 0 AND all_of_it) AS k
  FULL JOIN (
    SELECT p.merchant_id, p.payment_method, p.status, count(*) AS n FROM payout p WHERE all_of_it GROUP BY 1, 2, 3
  ) AS there USING (merchant_id, payment_method, status)
  WHERE k.n IS DISTINCT FROM there.n;

  RETURN QUERY
  SELECT 'movements_have_one_cause', m.merchant_id, format('%s for %s, which is no payout of theirs', m.step, m.cause)
  FROM movement m LEFT JOIN payout p ON p.id = payout_of(m.cause)
  WHERE m.id > since_movement AND m.cause LIKE 'payout:%' AND p.merchant_id IS DISTINCT FROM m.merchant_id;

  RETURN QUERY
  SELECT 'references_are_unique', p.merchant_id, format('payout:%s and payout:%s have the same reference', other.id, p.id)
  FROM payout p JOIN payout other
    ON other.reference = p.reference AND other.merchant_id = p.merchant_id AND other.id < p.id
  WHERE all_of_it OR p.id = ANY (touched_payouts);
END $$;

CREATE OR REPLACE FUNCTION audit_ledger(whole boolean) RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  RETURN QUERY SELECT * FROM audit_books(whole);
  RETURN QUERY SELECT * FROM audit_disbursements(whole);
  RETURN QUERY SELECT * FROM audit_batches(whole);
END $$;

REVOKE EXECUTE ON FUNCTION audit_batches, batch_of FROM PUBLIC;
