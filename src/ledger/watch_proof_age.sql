-- Halts payments out where the books were last proven more than `halt_after_ms` ago (0: never), and lifts
-- that halt once they are proven again. A halt for another reason stays. The time before this process began
-- (`up_ms` ago) does not count, because the process needs time for its first proof. `unproven_ms` leaves
-- that time out of the age of the proof; `halted` and `lifted` say what this call changed.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION watch_proof_age(
  halt_after_ms bigint,
  up_ms bigint,
  OUT unproven_ms bigint,
  OUT halted boolean,
  OUT lifted boolean
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  age_ms bigint := (SELECT extract(epoch FROM clock_timestamp() - p.proven_at) * 1000 FROM audit_point p);
BEGIN
  unproven_ms := least(coalesce(age_ms, up_ms), up_ms);
  halted := false;
  lifted := false;
  IF halt_after_ms > 0 AND unproven_ms > halt_after_ms THEN
    INSERT INTO payments_out_halt (reason, lifts_itself)
    VALUES (format('the books were last proven %s minutes ago', coalesce(age_ms, up_ms) / 60000), true)
      ON CONFLICT DO NOTHING;
    halted := FOUND;
  ELSIF halt_after_ms = 0 OR age_ms <= halt_after_ms THEN
    UPDATE payments_out_halt SET lifted_at = now(), lifted_reason = CASE halt_after_ms
      WHEN 0 THEN 'the setting AUDIT_HALT_AFTER is 0' ELSE 'the books were proven again' END
    WHERE lifted_at IS NULL AND lifts_itself;
    lifted := FOUND;
  END IF;
END $$;
