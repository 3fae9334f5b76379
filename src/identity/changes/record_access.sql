-- Emits an event about the access to a merchant's account. It cannot emit an event about money.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION record_access(merchant int, kind text, what jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  IF kind <> ALL (ARRAY['team_login', 'api_key_created', 'security_alert']) THEN
    RAISE EXCEPTION '% is no event about access', kind USING ERRCODE = 'insufficient_privilege';
  END IF;
  PERFORM append_events(ARRAY[(merchant, kind, what)::new_event], service_now());
END $$;
