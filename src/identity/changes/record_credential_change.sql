-- Records that a credential was replaced or ended. Nodes keep a copy of the record outside of the database,
-- so that they notice after a restore if the database has lost the change.
CREATE OR REPLACE FUNCTION record_credential_change() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
BEGIN
  INSERT INTO credential_change (api_key_id) VALUES (NEW.id);
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER "api_key_changed" AFTER UPDATE OF "version", "revoked_at" ON "api_key" FOR EACH ROW
  WHEN (OLD."version" <> NEW."version" OR OLD."revoked_at" IS DISTINCT FROM NEW."revoked_at")
  EXECUTE FUNCTION record_credential_change();

CREATE OR REPLACE TRIGGER "session_changed" AFTER UPDATE OF "revoked_at" ON "session" FOR EACH ROW
  WHEN (OLD."revoked_at" IS DISTINCT FROM NEW."revoked_at") EXECUTE FUNCTION record_credential_change();
