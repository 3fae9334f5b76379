-- Row-level security: the second wall between merchants, behind the filter that every read carries. Merchants' own
-- requests read under the role `payments_merchant`, which sees the rows of the merchant that its session is bound to
-- (`app.merchant`), whatever the statement asks for, and without one none. `payments_service`, the role of what concerns
-- all merchants (signing in, payers, callbacks, jobs), sees every row by a policy, for an ordinary account cannot give
-- BYPASSRLS. The walls are not forced on the owner: its functions write for all merchants, each row with its own, and no
-- request runs under it.

-- Puts the wall around a table. Every table that carries a merchant has it: a migration that makes one calls this, and
-- grants to `payments_merchant` what its requests read there.
CREATE FUNCTION wall_in(walled regclass, merchant_column name DEFAULT 'merchant_id') RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', walled);
  EXECUTE format('CREATE POLICY "every_merchant" ON %s TO payments_service USING (true)', walled);
  -- Read once per statement, so that it is an index's condition like any other.
  EXECUTE format(
    'CREATE POLICY "own_merchant" ON %s TO payments_merchant USING (%I = (SELECT nullif(current_setting(''app.merchant'', true), '''')::int))',
    walled, merchant_column);
END $$;
REVOKE EXECUTE ON FUNCTION wall_in FROM PUBLIC;

SELECT wall_in('merchant', 'id');
SELECT wall_in(name) FROM unnest(ARRAY['api_key', 'audit_proven', 'event', 'idempotency_key', 'merchant_balance', 'movement',
  'operator_callback', 'operator_exchange', 'operator_request', 'stream_head', 'transaction', 'transaction_block',
  'transaction_block_count', 'transaction_count', 'transaction_count_change']::regclass[]) AS name;

-- What merchants' requests read. They write through the functions, as before.
GRANT USAGE ON SCHEMA public TO payments_merchant;
GRANT SELECT ON "event", "merchant", "merchant_balance", "sandbox_clock", "stream_head", "transaction", "transaction_block",
  "transaction_block_count", "transaction_count", "transaction_count_change" TO payments_merchant;
GRANT EXECUTE ON FUNCTION service_now TO payments_merchant;
