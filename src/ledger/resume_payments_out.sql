-- Resumes payments out. Returns false where they were not halted, and while a restore waits to be accepted.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION resume_payments_out(why text) RETURNS boolean
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH lifted AS (
    UPDATE payments_out_halt SET lifted_reason = why, lifted_at = now()
    WHERE lifted_at IS NULL AND NOT EXISTS (SELECT FROM installation i WHERE i.restored_at IS NOT NULL)
      RETURNING id
  ) SELECT EXISTS (SELECT FROM lifted)
$$;
