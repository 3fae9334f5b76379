-- Proves these payments, batches and links with all their rows: money, events, requests, approvals, counts
-- and identities. Reports an id that does not exist, although an entry or an event names it.
CREATE OR REPLACE FUNCTION audit_subjects(
  transaction_ids bigint[],
  payout_ids bigint[],
  batch_ids int[],
  link_ids int[]
)
RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  IF transaction_ids <> '{}' THEN RETURN QUERY SELECT * FROM audit_collections(transaction_ids); END IF;
  IF transaction_ids <> '{}' OR payout_ids <> '{}' THEN
    RETURN QUERY SELECT * FROM audit_disbursements(transaction_ids, payout_ids);
  END IF;
  IF batch_ids <> '{}' THEN RETURN QUERY SELECT * FROM audit_batches(batch_ids); END IF;
  IF transaction_ids <> '{}' OR link_ids <> '{}' THEN
    RETURN QUERY SELECT * FROM audit_links(link_ids, transaction_ids);
  END IF;
  RETURN QUERY SELECT * FROM audit_identities(transaction_ids, payout_ids, batch_ids);
END $$;
