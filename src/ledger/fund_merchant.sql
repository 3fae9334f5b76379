-- Fund: money that the owner of a sandbox gives to a merchant, once per cause.
CREATE OR REPLACE FUNCTION fund_merchant(merchant int, cause text, amount bigint) RETURNS boolean
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH moved AS (
    INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
    VALUES (merchant, cause, 'fund', 'funding', 'available', amount, service_now())
    ON CONFLICT (cause, step) DO NOTHING RETURNING id
  ) SELECT EXISTS (SELECT FROM moved)
$$;

REVOKE EXECUTE ON FUNCTION fund_merchant FROM PUBLIC;
GRANT EXECUTE ON FUNCTION fund_merchant TO payments_service;
