-- Returns a name in the form for searches, without capitals and accents, independent of the locale of the
-- database.
CREATE OR REPLACE FUNCTION folded(name text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT translate(lower($1), 'ÀÂÄÇÈÉÊËÎÏÔÖÙÛÜŸàâäçèéêëîïôöùûüÿƐƆƝŊ', 'aaaceeeeiioouuuyaaaceeeeiioouuuyɛɔɲŋ')
$$;

REVOKE EXECUTE ON FUNCTION folded FROM PUBLIC;
GRANT EXECUTE ON FUNCTION folded TO payments_merchant;
