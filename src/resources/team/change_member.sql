-- Follows a change of the role or the standing of a member. Every session of the member ends in the same
-- transaction, and with it every token; that waits for the money that these sessions are moving
-- (`end_access`). API keys that were shown to the member and grant more than the role are revoked. One who
-- joins or rises begins to be an approver anew, and the owners are told. A last owner stays: the
-- merchant's row is held, so that of two owners who leave at once the second sees that it is the last.
CREATE OR REPLACE FUNCTION change_member() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
DECLARE
  revoked int[];
BEGIN
  IF OLD.status = 'removed' THEN
    RAISE EXCEPTION 'team member % was removed', OLD.id USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  IF OLD.status = 'active' AND OLD.role = 'owner' AND (NEW.status <> 'active' OR NEW.role <> 'owner') THEN
    PERFORM FROM merchant WHERE id = OLD.merchant_id FOR NO KEY UPDATE;
    IF NOT EXISTS (
      SELECT FROM team_member m
      WHERE m.merchant_id = OLD.merchant_id AND m.role = 'owner' AND m.status = 'active' AND m.id <> OLD.id)
        THEN
      RAISE EXCEPTION 'merchant % keeps its last owner', OLD.merchant_id
        USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'team_member_last_owner';
    END IF;
  END IF;
  -- The roles are in order, the highest first.
  IF NEW.role < OLD.role OR (OLD.status, NEW.status) = ('invited', 'active') THEN
    NEW.approver_since := service_now();
  END IF;
  IF (OLD.status, NEW.status) = ('invited', 'active') THEN
    INSERT INTO event (merchant_id, type, data, created_at)
    VALUES (OLD.merchant_id, 'security_alert', jsonb_build_object(
      'kind', 'member_joined', 'message', format('%s joined the team as %s.', OLD.email, NEW.role),
        'team_member_id', OLD.id),
      service_now());
  END IF;
  IF OLD.status = 'active' THEN
    PERFORM pg_advisory_xact_lock(72707373, OLD.merchant_id);
    UPDATE session s SET revoked_at = now() WHERE s.member_id = OLD.id AND s.revoked_at IS NULL;
    WITH ended AS (
      UPDATE api_key k SET revoked_at = now()
      WHERE k.issued_to_id = OLD.id AND k.revoked_at IS NULL
        AND (NEW.status = 'removed' OR NOT k.scopes <@ key_scopes_of(NEW.role))
      RETURNING k.id, coalesce(k.expires_at > now(), true) AS lived
    )
    SELECT array_agg(id ORDER BY id) FILTER (WHERE lived) INTO revoked FROM ended;
    IF revoked IS NOT NULL THEN
      INSERT INTO event (merchant_id, type, data, created_at)
      VALUES (OLD.merchant_id, 'security_alert', jsonb_build_object(
        'kind', 'keys_revoked',
        'message', format('API keys that were shown to %s were revoked (ids: %s): the member %s.', OLD.email,
          array_to_string(revoked, ', '),
          CASE NEW.status WHEN 'removed' THEN 'was removed' ELSE format('became %s', NEW.role) END),
        'team_member_id', OLD.id, 'api_key_ids', revoked), service_now());
    END IF;
  END IF;
  RETURN NEW;
END $$;

REVOKE EXECUTE ON FUNCTION change_member FROM PUBLIC;

CREATE OR REPLACE TRIGGER "team_member_change" BEFORE UPDATE OF "role", "status" ON "team_member" FOR EACH ROW
  WHEN (OLD.role <> NEW.role OR OLD.status <> NEW.status) EXECUTE FUNCTION change_member();
