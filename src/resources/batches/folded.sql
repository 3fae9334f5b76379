-- Returns a name in the form for searches, without capitals and accents, independent of the locale of the
-- database.
-- Granted to payments_merchant.
CREATE OR REPLACE FUNCTION folded(name text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT translate(lower($1), 'ÀÂÄÇÈÉÊËÎÏÔÖÙÛÜŸàâäçèéêëîïôöùûüÿƐƆƝŊ', 'aaaceeeeiioouuuyaaaceeeeiioouuuyɛɔɲŋ')
$$;
