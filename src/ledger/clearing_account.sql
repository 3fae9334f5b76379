-- Returns the clearing account of an operator. The planner can inline this form into the calling statement,
-- instead of one call per row.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION clearing_account(provider provider) RETURNS ledger_account
  LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE provider
    WHEN 'OperatorA' THEN 'clearing_operator_a'::ledger_account
    WHEN 'OperatorB' THEN 'clearing_operator_b'
    WHEN 'OperatorC' THEN 'clearing_operator_c'
    WHEN 'OperatorD' THEN 'clearing_operator_d'
  END
$$;
