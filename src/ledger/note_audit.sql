-- For processes of the release before, which note a proof so.
CREATE OR REPLACE FUNCTION note_audit(whole boolean) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$ SELECT note_proof(NULL, NULL) $$;

REVOKE EXECUTE ON FUNCTION note_audit FROM PUBLIC;
GRANT EXECUTE ON FUNCTION note_audit TO payments_service;
