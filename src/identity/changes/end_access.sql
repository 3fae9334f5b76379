-- A statement that ends access to a merchant's account waits here until the merchant's money movements under
-- way have ended. Money movements that begin later wait for the statement.
CREATE OR REPLACE FUNCTION end_access() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(72707373, (to_jsonb(OLD) ->> TG_ARGV[0])::int);
  RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER "api_key_access" BEFORE UPDATE OF "version", "revoked_at", "merchant_id"
  ON "api_key"
  FOR EACH ROW EXECUTE FUNCTION end_access('merchant_id');

CREATE OR REPLACE TRIGGER "session_access" BEFORE UPDATE OF "revoked_at", "merchant_id" ON "session"
  FOR EACH ROW EXECUTE FUNCTION end_access('merchant_id');

CREATE OR REPLACE TRIGGER "merchant_access" BEFORE UPDATE OF "status" ON "merchant" FOR EACH ROW
  EXECUTE FUNCTION end_access('id');

-- A change of the whitelist waits for the statements that checked the old list, as the end of a key waits for
-- the statements that checked the key.
CREATE OR REPLACE TRIGGER "merchant_whitelist" BEFORE UPDATE OF ip_whitelist ON "merchant" FOR EACH ROW
  WHEN (OLD.ip_whitelist IS DISTINCT FROM NEW.ip_whitelist) EXECUTE FUNCTION end_access('id');
