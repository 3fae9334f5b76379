-- CreateTable
CREATE TABLE "allowance" (
    "name" TEXT NOT NULL,
    "whole_at" TIMESTAMPTZ(6) NOT NULL,

    CONSTRAINT "allowance_pkey" PRIMARY KEY ("name")
);

ALTER TABLE "allowance" SET UNLOGGED;

-- Uses of allowances by these names: each uses its amount, unless less than that is left; then nothing is used.
-- One of which `maxima` come back within `refills_ms` is kept as the moment when it is whole again, to the
-- microsecond: more than a million in a second are not told apart.
-- @returns for each whether it was allowed, and how much is used, it included where it was
CREATE FUNCTION take_allowances(names text[], amounts float8[], maxima float8[], refills_ms float8[])
RETURNS TABLE (place int, allowed boolean, used float8) LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
DECLARE
  unit_s float8;
  whole timestamptz;
BEGIN
  -- In one order: of two services that ask for the same names none waits for the other in a circle.
  FOR place IN SELECT n FROM generate_subscripts(names, 1) AS n ORDER BY names[n], n LOOP
    unit_s := refills_ms[place] / 1000 / maxima[place];
    allowed := false;
    IF amounts[place] <= maxima[place] THEN
      INSERT INTO allowance AS kept
      VALUES (names[place], clock_timestamp() + make_interval(secs => amounts[place] * unit_s))
      ON CONFLICT (name) DO UPDATE
        SET whole_at = greatest(kept.whole_at, clock_timestamp()) + make_interval(secs => amounts[place] * unit_s)
        WHERE kept.whole_at
          <= clock_timestamp() + make_interval(secs => (maxima[place] - amounts[place]) * unit_s)
      RETURNING whole_at INTO whole;
      allowed := FOUND;
    END IF;
    IF NOT allowed THEN
      SELECT whole_at INTO whole FROM allowance WHERE name = names[place];
    END IF;
    used := greatest(0, coalesce(extract(epoch FROM whole - clock_timestamp())::float8 / unit_s, 0));
    RETURN NEXT;
  END LOOP;
END $$;

REVOKE EXECUTE ON FUNCTION take_allowances FROM PUBLIC;
GRANT EXECUTE ON FUNCTION take_allowances TO payments_service;
GRANT SELECT, INSERT, UPDATE, DELETE ON "allowance" TO payments_service;
