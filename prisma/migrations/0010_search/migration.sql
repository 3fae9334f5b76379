-- Lists are searched by words, and ordered by the amount. Both extensions are trusted: whoever may create in
-- the database may add them. They have a schema of their own, unless the administrator added them before.
DO $$
DECLARE
  located text;
BEGIN
  IF (SELECT count(*) FROM pg_extension WHERE extname IN ('pg_trgm', 'btree_gin')) < 2 THEN
    CREATE SCHEMA IF NOT EXISTS extensions;
    CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA extensions;
    CREATE EXTENSION IF NOT EXISTS btree_gin SCHEMA extensions;
  END IF;
  FOR located IN SELECT DISTINCT extnamespace::regnamespace::text FROM pg_extension
    WHERE extname IN ('pg_trgm', 'btree_gin')
  LOOP
    IF NOT has_schema_privilege(located::regnamespace, 'USAGE') THEN
      RAISE EXCEPTION 'The role % may not use the extensions in the schema %. Let an administrator run: '
        'GRANT USAGE ON SCHEMA % TO %;', current_user, located, located, current_user;
    END IF;
    PERFORM set_config('search_path', concat_ws(', ', current_setting('search_path'), located), true);
  END LOOP;
END $$;

-- The expressions are those of the functions `transaction_words`, `payout_words` and `payment_link_words`, by
-- which lists search: where the two differ, no index serves. A search is that of one merchant, so each index
-- begins with the merchant: as an expression, so that nothing but a search reads it. A payment comes into the
-- index once, when it ends: each version of a row costs as much there as in ten other indexes. Payments that
-- have not ended are few, and have an index of their own.
CREATE INDEX transaction_words ON "transaction" USING gin ((merchant_id + 0), (
  CASE WHEN octet_length(reference) = char_length(reference) THEN lower(reference)
    ELSE translate(lower(regexp_replace(normalize(reference, NFD),
      U&'[\0300-\036F\07EB-\07F3\FE0F]', '', 'g')), 'ƐƆƝŊ', 'ɛɔɲŋ') END
  || E'\n' || customer_phone || E'\n' ||
  CASE WHEN octet_length(coalesce(operator_reference, '')) = char_length(coalesce(operator_reference, ''))
    THEN lower(coalesce(operator_reference, ''))
    ELSE translate(lower(regexp_replace(normalize(coalesce(operator_reference, ''), NFD),
      U&'[\0300-\036F\07EB-\07F3\FE0F]', '', 'g')), 'ƐƆƝŊ', 'ɛɔɲŋ') END) gin_trgm_ops)
  WHERE status NOT IN ('pending', 'processing');

CREATE INDEX payout_words ON "payout" USING gin ((merchant_id + 0), (
  CASE WHEN octet_length(reference) = char_length(reference) THEN lower(reference)
    ELSE translate(lower(regexp_replace(normalize(reference, NFD),
      U&'[\0300-\036F\07EB-\07F3\FE0F]', '', 'g')), 'ƐƆƝŊ', 'ɛɔɲŋ') END
  || E'\n' || destination_phone || E'\n' ||
  CASE WHEN octet_length(coalesce(operator_reference, '')) = char_length(coalesce(operator_reference, ''))
    THEN lower(coalesce(operator_reference, ''))
    ELSE translate(lower(regexp_replace(normalize(coalesce(operator_reference, ''), NFD),
      U&'[\0300-\036F\07EB-\07F3\FE0F]', '', 'g')), 'ƐƆƝŊ', 'ɛɔɲŋ') END
  || E'\n' ||
  CASE WHEN octet_length(coalesce(beneficiary_name, '')) = char_length(coalesce(beneficiary_name, ''))
    THEN lower(coalesce(beneficiary_name, ''))
    ELSE translate(lower(regexp_replace(normalize(coalesce(beneficiary_name, ''), NFD),
      U&'[\0300-\036F\07EB-\07F3\FE0F]', '', 'g')), 'ƐƆƝŊ', 'ɛɔɲŋ') END) gin_trgm_ops)
  WHERE status NOT IN ('pending', 'processing');

CREATE INDEX transaction_open ON "transaction" (merchant_id) WHERE status IN ('pending', 'processing');
CREATE INDEX payout_open ON "payout" (merchant_id) WHERE status IN ('pending', 'processing');

CREATE INDEX payment_link_words ON "payment_link" USING gin ((merchant_id + 0), (
  CASE WHEN octet_length(title) = char_length(title) THEN lower(title)
    ELSE translate(lower(regexp_replace(normalize(title, NFD),
      U&'[\0300-\036F\07EB-\07F3\FE0F]', '', 'g')), 'ƐƆƝŊ', 'ɛɔɲŋ') END
  || E'\n' || url_slug) gin_trgm_ops);

-- These serve lists by amount, by author and by time. The condition keeps the checks of foreign keys, which
-- look for a merchant and an id, from ever reading them: a plan made while a table is nearly empty would take
-- them. So a list says that its ids are above zero.
CREATE INDEX transaction_by_amount ON "transaction" (merchant_id, amount, id) WHERE id > 0;
CREATE INDEX payout_by_amount ON "payout" (merchant_id, amount, id) WHERE id > 0;
CREATE INDEX payout_by_maker ON "payout" (merchant_id, maker, id) WHERE id > 0;
CREATE INDEX payout_by_time ON "payout" (merchant_id, created_at) WHERE id > 0;
CREATE INDEX batch_by_time ON "batch" (merchant_id, created_at) WHERE id > 0;
CREATE INDEX payment_link_by_time ON "payment_link" (merchant_id, created_at) WHERE id > 0;
CREATE INDEX payout_by_beneficiary ON "payout" (merchant_id, beneficiary_id, id)
  WHERE beneficiary_id IS NOT NULL;
CREATE INDEX batch_by_amount ON "batch" (merchant_id, total_amount, id) WHERE id > 0;
CREATE INDEX batch_by_maker ON "batch" (merchant_id, maker, id) WHERE id > 0;
-- Row-level security keeps a status out of the columns of an index, but not out of its condition. Most rows
-- end well; a list of other statuses is read here.
CREATE INDEX payout_not_completed ON "payout" (merchant_id, id)
  WHERE status IN ('pending', 'processing', 'failed', 'cancelled');
CREATE INDEX batch_not_completed ON "batch" (merchant_id, id) WHERE status <> 'completed';
