-- Two people decide a difference. One name is one person, also with other capitals or white space. Decisions
-- of earlier commits stay as they are.
ALTER TABLE "settlement_exception"
  DROP CONSTRAINT "settlement_exception_two_people",
  ADD CONSTRAINT "settlement_exception_two_people" CHECK (decided_by = 'operator'
    OR lower(regexp_replace(normalize(proposed_by, NFKC), '\s', '', 'g'))
      <> lower(regexp_replace(normalize(decided_by, NFKC), '\s', '', 'g'))) NOT VALID;
