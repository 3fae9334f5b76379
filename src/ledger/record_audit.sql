-- Records a proof for processes of the previous release, which call it by this name.
CREATE OR REPLACE FUNCTION record_audit(whole boolean) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$ SELECT record_proof(NULL, NULL) $$;

REVOKE EXECUTE ON FUNCTION record_audit FROM PUBLIC;
GRANT EXECUTE ON FUNCTION record_audit TO payments_service;
