-- Adds recipients to a draft, all or none. No row is returned where the merchant has no such batch.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION add_recipients(
  merchant int,
  credential int,
  credential_version int,
  adder text,
  operation_id text,
  batch int,
  names text[],
  accounts text[],
  amounts bigint[],
  methods provider[],
  count_max int,
  seed uuid DEFAULT gen_random_uuid()
) RETURNS TABLE (outcome text, status batch_status, recipient_count int) LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  draft batch;
  refused text;
BEGIN
  IF NOT may_act(merchant, credential, credential_version) THEN
    RETURN QUERY SELECT 'unauthenticated', NULL::batch_status, NULL::int;
    RETURN;
  END IF;
  SELECT b.* INTO draft FROM batch b WHERE b.id = $6 AND b.merchant_id = $1 FOR UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  refused := CASE WHEN operation_id = ANY (draft.added_for) THEN 'repeated' WHEN draft.status <> 'draft'
    THEN 'conflict'
    WHEN draft.recipient_count + cardinality(amounts) > count_max THEN 'too_many' END;
  IF refused IS NULL THEN
    -- Choice: keep the ids of the last hundred operations, because a repetition comes soon after its request.
    IF operation_id IS NOT NULL THEN
      UPDATE batch b SET added_for = (operation_id || b.added_for)[:100] WHERE b.id = $6;
    END IF;
    draft := write_recipients($6, names, accounts, amounts, methods, acting_member(merchant, adder), seed);
    PERFORM append_events(ARRAY[(merchant, 'batch_draft', batch_event_data(draft, 'draft'))::new_event],
      service_now());
  END IF;
  RETURN QUERY SELECT coalesce(refused, 'added'), draft.status, draft.recipient_count;
END $$;
