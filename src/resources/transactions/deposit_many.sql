-- Records deposits. For each one, the payment, its reservation, the request to the operator, the event and
-- the audit entry are written together or not at all. The checks are, in this order: the credential, the
-- reference, the refundable amount (of a refund), the halt, the money; deposits are checked in order of
-- arrival and made if the balance covers them. If the merchant's approvals cover deposits, a deposit of at
-- least the threshold waits for approval: its `outcome` is `waits`, its money is reserved, and no operator is
-- asked. `daily_limits` belong to callers with a daily limit: if one caller exceeds its limit, the whole call
-- is undone. `identities` are the identities of the requests to operators; a payment that the operator
-- executed before a restore (an orphan) is only asked about and never sent. If one call has a reference
-- twice, the second deposit is a `duplicate`, as in two calls.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION deposit_many(
  merchant_ids int[], api_key_ids int[], api_key_versions int[], providers provider[], phones text[],
  amounts bigint[], refs text[], requests jsonb[], refund_of_ids bigint[], identities uuid[],
  client_addresses text[], recordings audit_recording[], daily_limits daily_limit[], fence_ms bigint,
  first_check_ms bigint, approval_ms bigint, waits boolean
) RETURNS TABLE (
  outcome text, transaction_id bigint, request_id bigint, correlation_id uuid,
  created_at timestamptz, is_orphan boolean
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
  SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
  -- The results of `judge_deposits` and `record_deposits`. `orphans` and `waiting` are lists of ids; the
  -- other arrays have one entry for each deposit of the call.
  outcomes text[];
  ids bigint[];
  orphans bigint[];
  waiting bigint[];
  at timestamptz;
  recorded boolean[];
  request_ids bigint[];
  correlation_ids uuid[];
  -- Merchants with a deposit that was judged `made` but not written, because another payment took its
  -- reference at that moment. It seemed to leave less for later deposits, so their `short` becomes `again`.
  wrongly_declined int[];
BEGIN
  PERFORM share_access(merchant_ids, waits);
  -- Lock the refunded collections: only the holder of this lock may change how much of them is refunded.
  IF array_remove(refund_of_ids, NULL) <> '{}' THEN
    PERFORM FROM transaction t WHERE t.id = ANY (refund_of_ids) ORDER BY t.id FOR UPDATE;
  END IF;
  PERFORM FROM merchant_balance b WHERE b.merchant_id = ANY (merchant_ids) ORDER BY b.merchant_id FOR UPDATE;
  SELECT j.outcomes, j.ids, j.orphans, j.waiting, j.at INTO outcomes, ids, orphans, waiting, at
  FROM judge_deposits(merchant_ids, api_key_ids, api_key_versions, providers, amounts, refs, refund_of_ids,
    identities, client_addresses) AS j;
  SELECT r.recorded, r.request_ids, r.correlation_ids INTO recorded, request_ids, correlation_ids
  FROM record_deposits(ids, merchant_ids, providers, phones, amounts, refs, requests, refund_of_ids,
    identities, recordings, orphans, waiting, at, fence_ms, first_check_ms, approval_ms) AS r;
  FOR nth IN 1 .. cardinality(merchant_ids) LOOP
    outcome := outcomes[nth];
    IF outcome = 'made' AND recorded[nth] IS NULL THEN
      outcome := 'duplicate';
      wrongly_declined := wrongly_declined || merchant_ids[nth];
    ELSIF outcome = 'short' AND merchant_ids[nth] = ANY (wrongly_declined) THEN
      outcome := 'again';
    END IF;
    transaction_id := CASE WHEN outcome = 'made' THEN ids[nth] END;
    request_id := request_ids[nth];
    correlation_id := correlation_ids[nth];
    created_at := CASE WHEN outcome = 'made' THEN at END;
    is_orphan := coalesce(ids[nth] = ANY (orphans), false);
    IF outcome = 'made' AND (daily_limits[nth]).api_key_id IS NOT NULL THEN
      PERFORM take_daily_limit(daily_limits[nth], amounts[nth]);
    END IF;
    IF outcome = 'made' AND ids[nth] = ANY (waiting) THEN outcome := 'waits'; END IF;
    RETURN NEXT;
  END LOOP;
END $$;
