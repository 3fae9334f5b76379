-- Adds recipients in the given order to a draft that the caller has locked. @returns the changed draft
CREATE OR REPLACE FUNCTION write_recipients(
  batch int,
  names text[],
  accounts text[],
  amounts bigint[],
  methods provider[],
  added_by int,
  seed uuid DEFAULT gen_random_uuid()
)
RETURNS batch LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  grown batch;
BEGIN
  WHILE EXISTS (SELECT FROM batch_recipient r WHERE r.correlation_id = identity_after(seed, 1)) LOOP
    seed := identity_after(seed, 0);
  END LOOP;
  INSERT INTO batch_recipient (merchant_id, batch_id, name, account, amount, payment_method, correlation_id)
  SELECT b.merchant_id, b.id, i.name, i.account, i.amount, i.method, identity_after(seed, i.ordinal::int)
  FROM batch b, unnest(names, accounts, amounts, methods) WITH ORDINALITY AS i (name, account, amount,
    method, ordinal)
  WHERE b.id = $1 ORDER BY i.ordinal;
  UPDATE batch b
  SET recipient_count = b.recipient_count + cardinality(amounts),
    total_amount = b.total_amount + coalesce((SELECT sum(a) FROM unnest(amounts) AS a), 0),
    maker_member_ids = CASE WHEN added_by = ANY (b.maker_member_ids) OR added_by IS NULL
      THEN b.maker_member_ids
      ELSE b.maker_member_ids || added_by END
  WHERE b.id = $1 RETURNING b.* INTO grown;
  RETURN grown;
END $$;
