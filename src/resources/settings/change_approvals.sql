-- Changes approval settings. `asked` has the new values, with their names in REST. A change that tightens
-- approvals applies at once. A change that loosens active approvals waits as a `settings_change` for the
-- approvals that the present settings require. The caller has locked the merchant's row. `outcome` is
-- `changed`, `waits` with the id of the waiting change, `no_person` where an API key would loosen approvals,
-- or `conflict` where another change waits already. The last two write nothing.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION change_approvals(
  merchant int,
  credential int,
  credential_version int,
  actor text,
  asked jsonb,
  approval_ms bigint,
  address text
) RETURNS TABLE (outcome text, change_id int) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public,
  pg_temp AS $$
DECLARE
  at timestamptz := service_now();
  was jsonb := (SELECT approval_settings(m) FROM merchant m WHERE m.id = merchant);
  looser jsonb := '{}';
  person record;
  made settings_change;
BEGIN
  IF (was->>'payouts_require_approval')::boolean THEN
    looser := (SELECT coalesce(jsonb_object_agg(key, value), '{}') FROM jsonb_each(asked) WHERE CASE key
      WHEN 'approval_threshold' THEN value > was->key
      WHEN 'approvals_required' THEN value < was->key
      ELSE value = 'false' AND was->key = 'true' END);
  END IF;
  IF looser <> '{}' THEN
    SELECT * INTO person FROM person_of(merchant, credential, credential_version);
    outcome := CASE WHEN person.member_id IS NULL THEN 'no_person'
      WHEN EXISTS (SELECT FROM settings_change c WHERE c.merchant_id = merchant AND c.approval = 'pending')
        THEN 'conflict' END;
    IF outcome IS NOT NULL THEN
      RETURN NEXT;
      RETURN;
    END IF;
  END IF;
  PERFORM apply_approvals(merchant, asked - ARRAY(SELECT jsonb_object_keys(looser)));
  PERFORM emit_approval_settings(merchant, was, actor, address);
  outcome := 'changed';
  IF looser <> '{}' THEN
    outcome := 'waits';
    change_id := nextval('settings_change_id_seq');
    was := (SELECT approval_settings(m) FROM merchant m WHERE m.id = merchant);
    INSERT INTO settings_change (id, merchant_id, before, after, approval_digest, approval_expires_at,
      approvals_required, maker_member_id, created_at)
    VALUES (change_id, merchant, was, looser, settings_change_digest(merchant, change_id, was, looser),
      at + approval_ms * interval '1 millisecond', (was->>'approvals_required')::int, person.member_id, at)
    RETURNING * INTO made;
    PERFORM append_events(ARRAY[
      (merchant, 'settings_pending_approval', settings_change_event_data(made)),
      (merchant, 'security_alert', jsonb_strip_nulls(jsonb_build_object(
        'kind', 'approvals_loosening', 'message',
        format('%s asks to loosen the approvals (%s): it waits for %s approval(s).', actor, looser,
          made.approvals_required),
        'team_member_id', person.member_id, 'settings_change_id', made.id, 'ip', address)))]::new_event[],
      at);
  END IF;
  RETURN NEXT;
END $$;
