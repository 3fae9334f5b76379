-- Applies the consequences of a change of a member's role or status. Every session and every token of an
-- active member ends in the same transaction, which first waits for payments that the merchant is making. API
-- keys that were shown to the member are revoked if the member is removed or if they grant more than the new
-- role. For a member who joins or gets a higher role, the wait of new approvers begins now. A new member and
-- revoked keys write a security alert. The last owner cannot leave: if two owners leave at once, the lock on
-- the row of the merchant lets the second transaction see that its owner is the last.
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
  -- The enum lists the highest role first, so a smaller value is a higher role.
  IF NEW.role < OLD.role OR (OLD.status, NEW.status) = ('invited', 'active') THEN
    NEW.approver_since := service_now();
  END IF;
  IF (OLD.status, NEW.status) = ('invited', 'active') THEN
    PERFORM append_events(ARRAY[(OLD.merchant_id, 'security_alert', jsonb_build_object(
      'kind', 'member_joined', 'message', format('%s joined the team as %s.', OLD.email, NEW.role),
      'team_member_id', OLD.id))::new_event], service_now());
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
      PERFORM append_events(ARRAY[(OLD.merchant_id, 'security_alert', jsonb_build_object(
        'kind', 'keys_revoked',
        'message', format('These API keys were revoked: %s. They were shown to %s, who %s.',
          array_to_string(revoked, ', '), OLD.email,
          CASE NEW.status WHEN 'removed' THEN 'was removed' ELSE format('became %s', NEW.role) END),
        'team_member_id', OLD.id, 'api_key_ids', revoked))::new_event], service_now());
    END IF;
  END IF;
  RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER "team_member_change" BEFORE UPDATE OF "role", "status" ON "team_member" FOR EACH ROW
  WHEN (OLD.role <> NEW.role OR OLD.status <> NEW.status) EXECUTE FUNCTION change_member();
