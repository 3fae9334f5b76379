-- Halts payments out: from now on, none is sent to an operator. Returns false where payments were halted
-- already: then the first reason stays.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION halt_payments_out(why text) RETURNS boolean
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH made AS (
    INSERT INTO payments_out_halt (reason) VALUES (why) ON CONFLICT DO NOTHING RETURNING id
  ) SELECT EXISTS (SELECT FROM made)
$$;
