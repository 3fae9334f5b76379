-- Checks every invariant in one snapshot. Writes nothing. Checks the rows written after the proven point
-- (`audit_point`); if `whole`, all rows. Use `whole` only for small test databases. In a running service,
-- `prove_slice` checks the old rows part by part, and `audit_recent` the new ones.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION audit_ledger(whole boolean) RETURNS TABLE (
  invariant text,
  merchant_id int,
  problem text
)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  slice CONSTANT int := 20000;
  stage text;
  last bigint;
  after bigint;
BEGIN
  IF NOT whole THEN
    RETURN QUERY SELECT DISTINCT * FROM audit_recent(NULL, NULL);
    RETURN;
  END IF;
  RETURN QUERY SELECT * FROM audit_balances(true);
  FOREACH stage IN ARRAY '{ledger_entry,event,transaction,payout,batch,payment_link,balance_snapshot}'::text[]
  LOOP
    EXECUTE format('SELECT coalesce(max(id), 0) FROM %I', stage) INTO last;
    FOR after IN SELECT generate_series(0, last - 1, slice) LOOP
      RETURN QUERY SELECT DISTINCT * FROM audit_slice(stage, after, after + slice);
    END LOOP;
  END LOOP;
  RETURN QUERY SELECT * FROM audit_payout_counts(0, 2147483647);
END $$;
