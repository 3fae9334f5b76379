-- Whether a transfer that an operator made before a restore (an orphan) is the payment that is asked for now
-- under its identity: same operator, kind, amount and number. A number that the operator hides or does not
-- state proves nothing. The orphan of a reversal is no payment, so only its operator counts.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION is_orphan_of(
  orphan operator_orphan,
  kind text,
  operator provider,
  amount bigint,
  phone text
) RETURNS boolean LANGUAGE sql IMMUTABLE SET search_path = public, pg_temp AS $$
  SELECT orphan.provider = $3 AND (orphan.kind = 'reverse' OR (
    orphan.kind = $2 AND orphan.amount = $4
    AND (orphan.counterparty IS NULL
      OR orphan.counterparty !~ '^[\d\s().+-]*\d[\d\s().+-]*$'
      OR regexp_replace(orphan.counterparty, '\D', '', 'g') ~ ('^(00)?(223)?' || right($5, 8) || '$'))))
$$;
