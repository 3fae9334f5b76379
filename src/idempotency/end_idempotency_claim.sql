-- Ends a claim, unless another caller has taken it over: keeps the answer; or gives the key back, as if it
-- had never been used; or, with neither, lets the next request with the key resume the operation.
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION end_idempotency_claim(
  merchant int,
  named_operation text,
  given_key text,
  claimed int,
  given_answer bytea,
  give_back boolean
) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  IF give_back THEN
    DELETE FROM idempotency_key k
    WHERE k.merchant_id = merchant AND k.operation = named_operation AND k.key = given_key
      AND k.claim = claimed
      AND k.answer IS NULL;
  ELSE
    UPDATE idempotency_key k SET answer = given_answer, locked_until = NULL
    WHERE k.merchant_id = merchant AND k.operation = named_operation AND k.key = given_key
      AND k.claim = claimed
      AND k.answer IS NULL;
  END IF;
END $$;
