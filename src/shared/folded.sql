-- Returns a text in the form for searches, without capitals, accents, tone marks of N'Ko and the mark after
-- an emoji, independent of the locale of the database. Texts of ASCII only, which most are, take the short
-- way. Indexes contain this expression: see the migration 0010_search.
-- Granted to payments_merchant.
CREATE OR REPLACE FUNCTION folded(name text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN octet_length($1) = char_length($1) THEN lower($1) ELSE translate(lower(
    regexp_replace(normalize($1, NFD), U&'[\0300-\036F\07EB-\07F3\FE0F]', '', 'g')), 'ƐƆƝŊ', 'ɛɔɲŋ') END
$$;
