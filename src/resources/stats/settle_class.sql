-- Returns the class of a time to settle, in ms: the time rounded up to one of 24 steps per power of ten, so
-- that a class is at most 11 % wide; the first class ends at 100 ms. It is 0 where `settled` is null. The
-- steps are each second one of the series E48 (IEC 60063).
-- Granted to payments_merchant.
CREATE OR REPLACE FUNCTION settle_class(begun timestamptz, settled timestamptz) RETURNS bigint
  LANGUAGE plpgsql IMMUTABLE SET search_path = public, pg_temp AS $$
DECLARE
  steps CONSTANT bigint[] := '{100,110,121,133,147,162,178,196,215,237,261,287,316,348,383,422,464,'
    '511,562,619,681,750,825,909,1000}';
  ms bigint;
  scale bigint;
BEGIN
  IF settled IS NULL THEN RETURN 0; END IF;
  ms := greatest(extract(epoch FROM settled - begun) * 1000, 0);
  scale := 10 ^ greatest(length(ms::text) - 3, 0);
  RETURN steps[width_bucket((ms + scale - 1) / scale - 1, steps) + 1] * scale;
END $$;
