-- Written by hand: what the schema language cannot say.

-- The API shows each key with the member who knows its secret.
GRANT SELECT ("issued_to_id") ON "api_key" TO payments_merchant;
CREATE INDEX "api_key_issued_to_id" ON "api_key" ("issued_to_id") WHERE "kind" = 'key';

-- The scopes that an API key may keep while it is known to a member of a role. A viewer changes nothing, and a key has no
-- scope that only reads.
CREATE FUNCTION key_scopes_of(role member_role) RETURNS text[] LANGUAGE sql IMMUTABLE SET search_path = public, pg_temp AS $$
  SELECT CASE role
    WHEN 'viewer' THEN '{}'
    WHEN 'finance' THEN '{pay,deposit,balance,payout,payment_links,beneficiaries,bulk_pay}'
    ELSE '{pay,deposit,balance,payout,payment_links,beneficiaries,bulk_pay,team,webhooks,settings}' END::text[]
$$;

-- As before, and the API keys that were shown to the member end with the rights that they grant: all of them when the member
-- is removed, those that grant more than the new role when the role changes. The lock comes before any row: a key that is
-- being made for this member is then seen, and a statement that has the lock and waits for one of these rows is no deadlock.
CREATE OR REPLACE FUNCTION change_member() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
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
      WHERE m.merchant_id = OLD.merchant_id AND m.role = 'owner' AND m.status = 'active' AND m.id <> OLD.id) THEN
      RAISE EXCEPTION 'merchant % keeps its last owner', OLD.merchant_id
        USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'team_member_last_owner';
    END IF;
  END IF;
  IF OLD.status = 'active' THEN
    PERFORM pg_advisory_xact_lock(72707373, OLD.merchant_id);
    UPDATE api_key k SET revoked_at = now() WHERE k.member_id = OLD.id AND k.revoked_at IS NULL;
    WITH ended AS (
      UPDATE api_key k SET revoked_at = now()
      WHERE k.issued_to_id = OLD.id AND k.kind = 'key' AND k.revoked_at IS NULL
        AND (NEW.status = 'removed' OR NOT k.scopes <@ key_scopes_of(NEW.role))
      RETURNING k.id, coalesce(k.expires_at > now(), true) AS lived
    )
    SELECT array_agg(id ORDER BY id) FILTER (WHERE lived) INTO revoked FROM ended;
    IF revoked IS NOT NULL THEN
      INSERT INTO event (merchant_id, type, data, created_at)
      VALUES (OLD.merchant_id, 'security_alert', jsonb_build_object(
        'kind', 'keys_revoked',
        'message', format('API keys that were shown to %s were revoked (ids: %s): the member %s.', OLD.email,
          array_to_string(revoked, ', '), CASE NEW.status WHEN 'removed' THEN 'was removed' ELSE format('became %s', NEW.role) END),
        'team_member_id', OLD.id, 'api_key_ids', revoked), service_now());
    END IF;
  END IF;
  RETURN NEW;
END $$;

-- Hands API keys that were shown to a member over to the member behind `actor`, before that member is removed.
-- `outcome` is `kept`; `no_person` where no other member is behind `actor`; `unknown` where one of the keys does not live or
-- was not shown to the member, and `place` then says which of them, from 1. Only `kept` writes.
CREATE FUNCTION keep_keys(merchant int, member int, actor text, keys int[]) RETURNS TABLE (outcome text, place int, keeper int)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(72707373, merchant);
  keeper := (
    SELECT t.id FROM team_member t
    WHERE t.id = member_behind(merchant, actor) AND t.merchant_id = merchant AND t.status = 'active' AND t.id <> member);
  place := (
    SELECT min(i.place) FROM unnest(keys) WITH ORDINALITY AS i (id, place)
    LEFT JOIN api_key k ON k.id = i.id AND k.merchant_id = merchant AND k.kind = 'key' AND k.issued_to_id = member
      AND k.revoked_at IS NULL AND coalesce(k.expires_at > now(), true)
    WHERE k.id IS NULL);
  outcome := CASE WHEN keeper IS NULL THEN 'no_person' WHEN place IS NOT NULL THEN 'unknown' ELSE 'kept' END;
  IF outcome = 'kept' THEN
    UPDATE api_key k SET issued_to_id = keeper WHERE k.id = ANY (keys);
  END IF;
  RETURN NEXT;
END $$;

REVOKE EXECUTE ON FUNCTION key_scopes_of, keep_keys FROM PUBLIC;
GRANT EXECUTE ON FUNCTION keep_keys TO payments_service;
