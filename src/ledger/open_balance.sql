-- Makes the balance row of each new merchant, in the same transaction.
CREATE OR REPLACE FUNCTION open_balance() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
BEGIN
  INSERT INTO merchant_balance (merchant_id) VALUES (NEW.id);
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER "merchant_opened" AFTER INSERT ON "merchant" FOR EACH ROW
  EXECUTE FUNCTION open_balance();
