-- Refuses to delete exchanges and callbacks that are younger than 30 days, or whose request the service may
-- still ask about. Only the owner of the tables may delete at all.
CREATE OR REPLACE FUNCTION guard_wire_log() RETURNS trigger LANGUAGE plpgsql
  SET search_path = public, pg_temp AS $$
DECLARE
  is_young boolean;
BEGIN
  IF TG_TABLE_NAME = 'operator_exchange' THEN
    is_young := EXISTS (SELECT FROM gone WHERE at > now() - interval '30 days');
  ELSE
    is_young := EXISTS (SELECT FROM gone WHERE received_at > now() - interval '30 days');
  END IF;
  IF is_young OR EXISTS (SELECT FROM gone WHERE is_request_open(request_id)) THEN
    RAISE EXCEPTION 'DELETE on %: its rows are kept for 30 days, and while their request is open',
      TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER "operator_exchange_kept" AFTER DELETE ON "operator_exchange"
  REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION guard_wire_log();

CREATE OR REPLACE TRIGGER "operator_callback_kept" AFTER DELETE ON "operator_callback"
  REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION guard_wire_log();
