-- Begins a proof of all the books, slice by slice, of kind `rolling` (by the service) or `command`. Only one
-- rolling pass runs at a time: where one is running, the function returns it.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION begin_audit_pass(of_kind text) RETURNS int LANGUAGE sql SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
  -- No process continues the pass of a command that was killed: its sums, and later the pass, are deleted.
  DELETE FROM audit_pass_sum s USING audit_pass p
  WHERE p.id = s.pass_id AND p.kind = 'command' AND p.begun_at < now() - interval '7 days';
  DELETE FROM audit_pass p WHERE p.begun_at < now() - interval '30 days'
    AND (p.kind = 'command' OR p.ended_at IS NOT NULL);
  INSERT INTO audit_pass (kind) VALUES (of_kind)
  ON CONFLICT ((true)) WHERE "kind" = 'rolling' AND "ended_at" IS NULL DO UPDATE SET kind = excluded.kind
    RETURNING id
$$;
