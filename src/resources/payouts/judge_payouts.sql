-- Judges the payouts of one call, for `create_payouts`, which holds the balances: first the credential, then
-- the reference, then the halt, then the money, in the order of arrival. What is covered leaves less for the
-- next; what is scheduled takes nothing yet. Of equal references in one call the first is judged. A function
-- of its own reads after the locks: a payout that waited for them meets a halt that came meanwhile. `ids` are
-- of the payouts that are `made`, `asking` are those of them that wait for people.
CREATE OR REPLACE FUNCTION judge_payouts(
  merchant_ids int[], api_key_ids int[], api_key_versions int[], providers provider[], amounts bigint[],
  refs text[], scheduled_ats timestamptz[], identities uuid[], client_addresses text[],
  OUT outcomes text[], OUT ids bigint[], OUT asking bigint[]
) LANGUAGE plpgsql AS $$
DECLARE
  item record;
  merchant int;
  -- What the merchant has left.
  remaining bigint;
BEGIN
  ids := array_fill(NULL::bigint, ARRAY[cardinality(merchant_ids)]);
  asking := '{}';
  FOR item IN
    SELECT i.merchant_id, i.amount, i.ordinal, i.scheduled_at IS NOT NULL AS is_scheduled, balance.available,
      account.id IS NOT NULL AS allowed,
      account.payouts_require_approval AND i.amount >= account.approval_threshold AS asks,
      old.found OR elsewhere.found AS found,
      first_value(i.ordinal) OVER (
        PARTITION BY i.merchant_id, i.reference, account.id IS NULL ORDER BY i.ordinal) AS first_ordinal,
      EXISTS (SELECT FROM payments_out_halt h WHERE h.lifted_at IS NULL) AS halted
    FROM unnest(merchant_ids, api_key_ids, api_key_versions, providers, amounts, refs, scheduled_ats,
      identities, client_addresses)
      WITH ORDINALITY AS i (merchant_id, api_key_id, api_key_version, provider, amount, reference,
        scheduled_at, identity, address, ordinal)
    LEFT JOIN LATERAL account_of_caller(i.merchant_id, i.api_key_id, i.api_key_version, i.address)
      AS account ON true
    LEFT JOIN LATERAL (
      -- Said so, only the index that identifies it can answer, whatever the planner believes of the others.
      SELECT true AS found FROM payout p
      WHERE (p.reference, p.merchant_id) BETWEEN (i.reference, i.merchant_id)
        AND (i.reference, i.merchant_id) LIMIT 1
    ) AS old ON true
    LEFT JOIN LATERAL (
      -- Another operator executed it before a restore.
      SELECT true AS found FROM operator_orphan o WHERE o.correlation_id = i.identity
        AND o.provider <> i.provider LIMIT 1
    ) AS elsewhere ON true
    LEFT JOIN LATERAL (
      SELECT b.available FROM merchant_balance b WHERE b.merchant_id = i.merchant_id LIMIT 1
    ) AS balance ON true
    ORDER BY i.merchant_id, i.ordinal
  LOOP
    IF merchant IS DISTINCT FROM item.merchant_id THEN
      merchant := item.merchant_id;
      remaining := item.available;
    END IF;
    outcomes[item.ordinal] := CASE
      WHEN NOT item.allowed THEN 'unauthenticated'
      WHEN item.found THEN 'duplicate'
      WHEN item.first_ordinal <> item.ordinal THEN
        CASE outcomes[item.first_ordinal] WHEN 'made' THEN 'duplicate' ELSE outcomes[item.first_ordinal] END
      WHEN item.is_scheduled THEN 'made'
      WHEN item.halted THEN 'halted'
      WHEN item.amount <= remaining THEN 'made'
      ELSE 'short' END;
    CONTINUE WHEN outcomes[item.ordinal] <> 'made';
    IF NOT item.is_scheduled THEN remaining := remaining - item.amount; END IF;
    ids[item.ordinal] := nextval('payout_id_seq');
    IF item.asks THEN asking := asking || ids[item.ordinal]; END IF;
  END LOOP;
END $$;

REVOKE EXECUTE ON FUNCTION judge_payouts FROM PUBLIC;
