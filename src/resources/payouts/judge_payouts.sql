-- Decides the outcome of each payout of one call of `create_payouts`, which holds the locks on the balances.
-- The checks are, in this order: the credential, the reference, the orphans of a restore, the halt, the
-- money; payouts are checked in order of arrival. A scheduled payout is halted only while a restore waits to
-- be accepted: until then it is not known which payouts the operators have made. A covered payout leaves less
-- for the next; a scheduled payout takes nothing yet. If several payouts of a call have the same reference,
-- the first one is checked; if it is made, the others are `duplicate`, else they get its outcome. This is a
-- separate function, so that its statement reads after the locks were taken: a halt that came while a payout
-- waited for the locks counts. `ids` has the ids of the `made` payouts; `asking` those that wait for
-- approval.
CREATE OR REPLACE FUNCTION judge_payouts(
  items payout_item[],
  OUT outcomes text[],
  OUT ids bigint[],
  OUT asking bigint[]
) LANGUAGE plpgsql AS $$
DECLARE
  item record;
  merchant int;
  -- The available amount of the merchant that is left for its next payouts.
  remaining bigint;
BEGIN
  ids := array_fill(NULL::bigint, ARRAY[cardinality(items)]);
  asking := '{}';
  FOR item IN
    SELECT
      i.merchant_id,
      i.amount,
      i.ordinality AS ordinal,
      i.scheduled_at IS NOT NULL AS is_scheduled,
      balance.available,
      account.id IS NOT NULL AS allowed,
      account.payouts_require_approval AND i.amount >= account.approval_threshold AS asks,
      old.found,
      orphan.is_same,
      first_value(i.ordinality) OVER (
        PARTITION BY i.merchant_id, i.reference, account.id IS NULL, orphan.is_same ORDER BY i.ordinality
      ) AS first_ordinal,
      CASE WHEN i.scheduled_at IS NULL
        THEN EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS NULL)
        ELSE EXISTS (SELECT FROM installation n WHERE n.restored_at IS NOT NULL) END AS halted
    FROM unnest(items) WITH ORDINALITY AS i
    LEFT JOIN LATERAL account_of_caller(i.merchant_id, i.api_key_id, i.api_key_version, i.client_address)
      AS account ON true
    LEFT JOIN LATERAL (
      -- Because of BETWEEN, only the unique index on (reference, merchant_id) can answer this, even if the
      -- planner's estimates prefer another index.
      SELECT true AS found FROM payout p
      WHERE (p.reference, p.merchant_id) BETWEEN (i.reference, i.merchant_id)
        AND (i.reference, i.merchant_id) LIMIT 1
    ) AS old ON true
    LEFT JOIN LATERAL (
      -- False: before a restore, an operator executed another payment under this identity.
      SELECT bool_and(is_orphan_of(o, 'disburse', i.provider, i.amount, i.phone)) AS is_same
      FROM operator_orphan o WHERE o.correlation_id = i.identity
    ) AS orphan ON true
    LEFT JOIN LATERAL (
      SELECT b.available FROM merchant_balance b WHERE b.merchant_id = i.merchant_id LIMIT 1
    ) AS balance ON true
    ORDER BY i.merchant_id, i.ordinality
  LOOP
    IF merchant IS DISTINCT FROM item.merchant_id THEN
      merchant := item.merchant_id;
      remaining := item.available;
    END IF;
    outcomes[item.ordinal] := CASE
      WHEN NOT item.allowed THEN 'unauthenticated'
      WHEN item.found THEN 'duplicate'
      WHEN NOT item.is_same THEN 'differs'
      WHEN item.first_ordinal <> item.ordinal THEN
        CASE outcomes[item.first_ordinal] WHEN 'made' THEN 'duplicate' ELSE outcomes[item.first_ordinal] END
      WHEN item.halted THEN 'halted'
      WHEN item.is_scheduled THEN 'made'
      WHEN item.amount <= remaining THEN 'made'
      ELSE 'short' END;
    CONTINUE WHEN outcomes[item.ordinal] <> 'made';
    IF NOT item.is_scheduled THEN remaining := remaining - item.amount; END IF;
    ids[item.ordinal] := nextval('payout_id_seq');
    IF item.asks THEN asking := asking || ids[item.ordinal]; END IF;
  END LOOP;
END $$;
