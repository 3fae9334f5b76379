-- Stores the number of required approvals, and the maker, with a new payout that needs an approval. Later
-- changes of the settings, or of the holder of an API key, do not affect a waiting payout.
CREATE OR REPLACE FUNCTION ask_approval() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
BEGIN
  NEW.approvals_required := (SELECT m.approvals_required FROM merchant m WHERE m.id = NEW.merchant_id);
  NEW.maker_member_id := nullif(acting_member(NEW.merchant_id, NEW.maker), 0);
  RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER "payout_asking" BEFORE INSERT ON "payout" FOR EACH ROW
  WHEN (NEW.approval <> 'not_required')
  EXECUTE FUNCTION ask_approval();
