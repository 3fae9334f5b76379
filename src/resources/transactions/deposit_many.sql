-- Records deposits. For each one, the payment, its reservation, the request to the operator, the event and
-- the audit entry are written together or not at all. The checks are, in this order: the credential, the
-- reference, the refundable amount (of a refund), the halt, the money; deposits are checked in order of
-- arrival and made if the balance covers them. If the merchant's approvals cover deposits, a deposit of at
-- least the threshold waits for approval: its `outcome` is `waits`, its money is reserved, and no operator is
-- asked. `daily_limit` is null for a caller without one: if a caller exceeds its limit, the whole call is
-- undone. `identity` is that of the request to the operator; a payment that the operator executed before a
-- restore (an orphan) is only asked about and never sent. If one call has a reference twice, the second
-- deposit is a `duplicate`, as in two calls.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION deposit_many(
  items deposit_item[],
  fence_ms bigint,
  first_check_ms bigint,
  approval_ms bigint,
  waits boolean
) RETURNS TABLE (
  outcome text,
  transaction_id bigint,
  request_id bigint,
  correlation_id uuid,
  created_at timestamptz,
  is_orphan boolean
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
  SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  merchants int[] := ARRAY(SELECT i.merchant_id FROM unnest(items) AS i);
  refunded bigint[] := ARRAY(SELECT i.refund_of_id FROM unnest(items) AS i WHERE i.refund_of_id IS NOT NULL);
  -- The results of `judge_deposits` and `record_deposits`. `orphans` and `waiting` are lists of ids; the
  -- other arrays have one entry for each deposit of the call.
  judged record;
  written record;
  -- Merchants with a deposit that was judged `made` but not written, because another payment took its
  -- reference at that moment. It seemed to leave less for later deposits, so their `short` becomes `again`.
  wrongly_declined int[];
BEGIN
  PERFORM share_access(merchants, waits);
  -- Lock the refunded collections: only the holder of this lock may change how much of them is refunded.
  IF refunded <> '{}' THEN
    PERFORM FROM transaction t WHERE t.id = ANY (refunded) ORDER BY t.id FOR UPDATE;
  END IF;
  PERFORM FROM merchant_balance b WHERE b.merchant_id = ANY (merchants) ORDER BY b.merchant_id FOR UPDATE;
  judged := judge_deposits(items);
  written := record_deposits(items, judged.ids, judged.orphans, judged.waiting, judged.at, fence_ms,
    first_check_ms, approval_ms);
  FOR nth IN 1 .. cardinality(items) LOOP
    outcome := judged.outcomes[nth];
    IF outcome = 'made' AND written.recorded[nth] IS NULL THEN
      outcome := 'duplicate';
      wrongly_declined := wrongly_declined || merchants[nth];
    ELSIF outcome = 'short' AND merchants[nth] = ANY (wrongly_declined) THEN
      outcome := 'again';
    END IF;
    transaction_id := CASE WHEN outcome = 'made' THEN judged.ids[nth] END;
    request_id := written.request_ids[nth];
    correlation_id := written.correlation_ids[nth];
    created_at := CASE WHEN outcome = 'made' THEN judged.at END;
    is_orphan := coalesce(judged.ids[nth] = ANY (judged.orphans), false);
    IF outcome = 'made' AND items[nth].daily_limit.api_key_id IS NOT NULL THEN
      PERFORM take_daily_limit(items[nth].daily_limit, items[nth].amount);
    END IF;
    IF outcome = 'made' AND judged.ids[nth] = ANY (judged.waiting) THEN outcome := 'waits'; END IF;
    RETURN NEXT;
  END LOOP;
END $$;
