-- Writes the deposits that have an id, for `deposit_many`: the payment, its reservation, the event, the
-- request to the operator or the pending approval, and the audit entry. If a collection takes the same
-- reference at this moment, the first insert gets it. `recorded` is true where a deposit was written; the
-- positions in the results are those of the arguments.
CREATE OR REPLACE FUNCTION record_deposits(
  items deposit_item[],
  ids bigint[],
  orphans bigint[],
  waiting bigint[],
  at timestamptz,
  fence_ms bigint,
  first_check_ms bigint,
  approval_ms bigint,
  OUT recorded boolean[],
  OUT request_ids bigint[],
  OUT correlation_ids uuid[]
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  made record;
  ordinal int;
  events new_event[];
BEGIN
  FOR made IN
    WITH made AS (
      INSERT INTO transaction (id, merchant_id, transaction_type, payment_method, customer_phone, amount,
        status, reference, request_data, refund_of_id, created_at, correlation_id)
      SELECT i.id, i.merchant_id, 'deposit', i.provider, i.phone, i.amount,
        CASE WHEN i.id = ANY (waiting) THEN 'pending' ELSE 'processing' END::transaction_status, i.reference,
        i.request, i.refund_of_id, at, coalesce(i.identity, gen_random_uuid())
      FROM unnest(ids, items) AS i (id)
      WHERE i.id IS NOT NULL ORDER BY i.merchant_id, i.reference, i.id
      ON CONFLICT (reference, merchant_id) DO NOTHING
      RETURNING id, merchant_id, payment_method, customer_phone, amount, status, reference, refund_of_id,
        correlation_id, transaction AS self
    ), reserved AS (
      INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
      SELECT merchant_id, 'transaction:' || id, 'reserve', 'available', 'reserved', amount, at FROM made
        ORDER BY merchant_id, id
    ), waits AS (
      INSERT INTO deposit_approval (transaction_id, merchant_id, approval_digest, approval_expires_at,
        approvals_required, maker, maker_member_id)
      SELECT made.id, made.merchant_id, deposit_digest(self), at + approval_ms * interval '1 millisecond',
        m.approvals_required, r.actor, nullif(acting_member(made.merchant_id, r.actor), 0)
      FROM made JOIN merchant m ON m.id = made.merchant_id
      CROSS JOIN LATERAL (SELECT (items[array_position(ids, made.id)].recording).actor) AS r
      WHERE made.status = 'pending'
        ORDER BY made.merchant_id, made.id
    ), asked AS (
      INSERT INTO operator_request (merchant_id, transaction_id, provider, kind, correlation_id, amount,
        phone, state, fence_until, next_check_at, accepted_at, created_at)
      SELECT merchant_id, id, payment_method, 'disburse', correlation_id, amount, customer_phone,
        CASE WHEN id = ANY (orphans) THEN 'accepted' ELSE 'sending' END::operator_request_state,
        now() + fence_ms * interval '1 millisecond',
        at + CASE WHEN id = ANY (orphans) THEN 0 ELSE first_check_ms END * interval '1 millisecond',
        CASE WHEN id = ANY (orphans) THEN at END, at
      FROM made WHERE status <> 'pending' ORDER BY id
      RETURNING id, transaction_id, correlation_id
    ), entry AS (
      INSERT INTO audit_entry (merchant_id, actor, address, request_id, channel, operation, is_payment,
        target, after)
      SELECT (i.recording).*, true, 'transaction:' || made.id,
        jsonb_build_object('amount', made.amount, 'reference', made.reference)
      FROM unnest(ids, items) WITH ORDINALITY AS i (id)
      JOIN made ON made.id = i.id
      ORDER BY i.ordinality
      RETURNING merchant_id, id
    ), unchained AS (
      INSERT INTO audit_unchained (merchant_id, entry_id) SELECT merchant_id, id FROM entry
    )
    SELECT made.id AS transaction_id, asked.id, asked.correlation_id,
      (made.merchant_id, 'deposit_' || made.status, deposit_event_data(self, NULL, CASE made.status
        WHEN 'pending' THEN 'pending' END))::new_event AS event
    FROM made LEFT JOIN asked ON asked.transaction_id = made.id ORDER BY made.id
  LOOP
    ordinal := array_position(ids, made.transaction_id);
    request_ids[ordinal] := made.id;
    correlation_ids[ordinal] := made.correlation_id;
    recorded[ordinal] := true;
    events := events || made.event;
  END LOOP;
  PERFORM append_events(events, at);
END $$;
