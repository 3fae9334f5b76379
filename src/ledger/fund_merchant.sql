-- Credits money that the owner of a sandbox gives to a merchant, once per origin.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION fund_merchant(merchant int, origin text, amount bigint) RETURNS boolean
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH moved AS (
    INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
    VALUES (merchant, origin, 'fund', 'funding', 'available', amount, service_now())
    ON CONFLICT (origin, step) DO NOTHING RETURNING id
  ) SELECT EXISTS (SELECT FROM moved)
$$;
