-- Stores transfers that an operator made for this service and that the database lacks; known ones stay as
-- they are.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION keep_orphans(
  kinds text[],
  identities uuid[],
  operator_refs text[],
  client_refs text[],
  amounts bigint[],
  counterparties text[],
  posted_ats timestamptz[],
  operator provider,
  statement_day date
) RETURNS void LANGUAGE sql SET search_path = public, pg_temp AS $$
  INSERT INTO operator_orphan (provider, kind, correlation_id, operator_ref, client_ref, amount,
    counterparty, posted_at, statement_day)
  SELECT operator, i.kind, i.identity, i.operator_ref, i.client_ref, i.amount, i.counterparty, i.posted_at,
    keep_orphans.statement_day
  FROM unnest(kinds, identities, operator_refs, client_refs, amounts, counterparties, posted_ats)
    AS i (kind, identity, operator_ref, client_ref, amount, counterparty, posted_at)
  ON CONFLICT (provider, operator_ref, kind) DO NOTHING
$$;
