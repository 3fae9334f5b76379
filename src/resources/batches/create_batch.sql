-- Creates a draft. With `retried`, the draft gets the failed recipients of that batch, and the arrays are
-- null. A batch has one retry; a second one is allowed only where the first was cancelled before any of its
-- recipients was paid or failed. Otherwise a recipient could be paid twice. Recipients that fail in a retry
-- are retried by a retry of that retry.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION create_batch(
  merchant int,
  credential int,
  credential_version int,
  maker text,
  operation_id text,
  title text,
  method provider,
  names text[],
  accounts text[],
  amounts bigint[],
  methods provider[],
  retried int DEFAULT NULL,
  seed uuid DEFAULT gen_random_uuid()
) RETURNS TABLE (outcome text, batch_id int) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public,
  pg_temp AS $$
#variable_conflict use_column
DECLARE
  at timestamptz := service_now();
  old batch;
  made batch;
BEGIN
  IF NOT may_act(merchant, credential, credential_version) THEN
    RETURN QUERY SELECT 'unauthenticated', NULL::int;
    RETURN;
  END IF;
  SELECT b.* INTO made FROM batch b WHERE b.made_for = operation_id AND b.merchant_id = merchant;
  IF FOUND THEN
    RETURN QUERY SELECT 'repeated', made.id;
    RETURN;
  END IF;
  IF retried IS NOT NULL THEN
    SELECT b.* INTO old FROM batch b WHERE b.id = retried AND b.merchant_id = merchant FOR UPDATE;
    IF NOT FOUND THEN RETURN; END IF;
    IF old.processed_at IS NULL OR old.failed_count = 0 THEN
      RETURN QUERY SELECT CASE WHEN old.processed_at IS NULL THEN 'open' ELSE 'nothing' END, old.id;
      RETURN;
    END IF;
    SELECT b.* INTO made FROM batch b
    WHERE b.retry_of_id = retried AND (b.status <> 'cancelled' OR b.succeeded_count + b.failed_count > 0);
    IF FOUND THEN
      RETURN QUERY SELECT 'retried', made.id;
      RETURN;
    END IF;
    SELECT array_agg(r.name ORDER BY r.id), array_agg(r.account ORDER BY r.id),
      array_agg(r.amount ORDER BY r.id), array_agg(r.payment_method ORDER BY r.id)
      INTO names, accounts, amounts, methods
    FROM batch_recipient r WHERE r.batch_id = retried AND r.status = 'failed';
  END IF;
  INSERT INTO batch (merchant_id, title, payment_method, maker, made_for, retry_of_id, created_at)
  VALUES (merchant, coalesce($6, old.title), $7, $4, operation_id, retried, at)
  ON CONFLICT (made_for, merchant_id) DO NOTHING RETURNING * INTO made;
  IF NOT FOUND THEN
    RETURN QUERY SELECT 'repeated', b.id FROM batch b WHERE b.made_for = operation_id
      AND b.merchant_id = merchant;
    RETURN;
  END IF;
  made := write_recipients(made.id, names, accounts, amounts, methods, acting_member(merchant, maker), seed);
  PERFORM append_events(ARRAY[(merchant, 'batch_draft', batch_event_data(made, NULL))::new_event], at);
  RETURN QUERY SELECT 'made', made.id;
END $$;
