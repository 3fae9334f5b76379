-- Decides the outcome of each deposit of one call of `deposit_many`, which holds the locks. The checks are,
-- in this order: the credential, the reference, the orphans of a restore, the refundable amount (of a
-- refund), the halt, the money; deposits are checked in order of arrival, and each `made` deposit leaves less
-- for the next. This is a separate function, so that its statement reads after the locks were taken: a halt
-- that came while a deposit waited for the locks counts. `ids` has the ids of the `made` deposits: of these,
-- `orphans` were executed by the operator before a restore, and `waiting` wait for approval. A second refund
-- of a collection in one call is judged `again`.
CREATE OR REPLACE FUNCTION judge_deposits(
  items deposit_item[],
  OUT outcomes text[],
  OUT ids bigint[],
  OUT orphans bigint[],
  OUT waiting bigint[],
  OUT at timestamptz
) LANGUAGE plpgsql AS $$
DECLARE
  item record;
  merchant int;
  -- The available amount of the merchant that is left for its next deposits.
  remaining bigint;
  refunded bigint[];
BEGIN
  ids := array_fill(NULL::bigint, ARRAY[cardinality(items)]);
  orphans := '{}';
  waiting := '{}';
  FOR item IN
    SELECT
      i.merchant_id,
      i.amount,
      i.refund_of_id,
      i.ordinality AS ordinal,
      account.id AS account_id,
      old.found,
      CASE WHEN account.payouts_require_approval AND account.approvals_cover_deposits
        THEN account.approval_threshold END AS threshold,
      original.remaining AS refundable,
      balance.available,
      orphan.is_same,
      (SELECT service_now() + (clock_timestamp() - now())) AS now,
      EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS NULL) AS halted
    FROM unnest(items) WITH ORDINALITY AS i
    LEFT JOIN LATERAL account_of_caller(i.merchant_id, i.api_key_id, i.api_key_version, i.client_address)
      AS account ON true
    LEFT JOIN LATERAL (
      -- Because of BETWEEN, only the unique index on (reference, merchant_id) can answer this, even if the
      -- planner's estimates prefer another index.
      SELECT true AS found FROM transaction t
      WHERE (t.reference, t.merchant_id) BETWEEN (i.reference, i.merchant_id)
        AND (i.reference, i.merchant_id) LIMIT 1
    ) AS old ON true
    -- The refundable amount of a collection: the paid amount, less what refunds have paid or may still pay.
    LEFT JOIN LATERAL (
      SELECT t.settled_amount - (SELECT r.paid + r.open FROM refunds_of(t.id) AS r) AS remaining
      -- Because of `OFFSET 0`, the planner finds the row by its id, and checks the other conditions later.
      FROM (SELECT o.* FROM transaction o WHERE o.id = i.refund_of_id OFFSET 0) AS t
      WHERE t.merchant_id = i.merchant_id AND t.transaction_type = 'pay' AND t.status = 'success'
      LIMIT 1
    ) AS original ON true
    LEFT JOIN LATERAL (
      SELECT b.available FROM merchant_balance b WHERE b.merchant_id = i.merchant_id LIMIT 1
    ) AS balance ON true
    LEFT JOIN LATERAL (
      -- An operator that executed this payment before a restore is only asked about it. If it executed
      -- another payment under this identity, the outcome is `differs`.
      SELECT bool_and(is_orphan_of(o, 'disburse', i.provider, i.amount, i.phone)) AS is_same
      FROM operator_orphan o WHERE o.correlation_id = i.identity
    ) AS orphan ON true
    ORDER BY i.merchant_id, i.ordinality
  LOOP
    at := item.now::timestamptz(3);
    IF merchant IS DISTINCT FROM item.merchant_id THEN
      merchant := item.merchant_id;
      remaining := item.available;
    END IF;
    outcomes[item.ordinal] := CASE
      WHEN item.account_id IS NULL THEN 'unauthenticated'
      WHEN item.found THEN 'duplicate'
      WHEN NOT item.is_same THEN 'differs'
      WHEN item.refund_of_id IS NOT NULL AND item.refundable IS NULL THEN 'not_refundable'
      WHEN item.amount > item.refundable THEN 'too_large'
      WHEN item.halted THEN 'halted'
      WHEN item.refund_of_id = ANY (refunded) THEN 'again'
      WHEN item.amount <= remaining THEN 'made'
      ELSE 'short' END;
    IF outcomes[item.ordinal] = 'made' THEN
      remaining := remaining - item.amount;
      ids[item.ordinal] := nextval('transaction_id_seq');
      IF item.is_same THEN orphans := orphans || ids[item.ordinal];
      -- An orphan needs no approval, because the operator has already executed it.
      ELSIF item.amount >= item.threshold THEN waiting := waiting || ids[item.ordinal]; END IF;
      IF item.refund_of_id IS NOT NULL THEN refunded := refunded || item.refund_of_id; END IF;
    END IF;
  END LOOP;
END $$;
