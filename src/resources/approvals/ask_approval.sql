-- How many people are asked, and who none of them is, stands with the payout from the moment it is made:
-- later changes of the settings, or of who holds a key, change nothing of what waits.
CREATE OR REPLACE FUNCTION ask_approval() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = public, pg_temp AS $$
BEGIN
  NEW.approvals_required := (SELECT m.approvals_required FROM merchant m WHERE m.id = NEW.merchant_id);
  NEW.maker_member_id := nullif(acting_member(NEW.merchant_id, NEW.maker), 0);
  RETURN NEW;
END $$;

REVOKE EXECUTE ON FUNCTION ask_approval FROM PUBLIC;

CREATE OR REPLACE TRIGGER "payout_asking" BEFORE INSERT ON "payout" FOR EACH ROW
  WHEN (NEW.approval <> 'not_required')
  EXECUTE FUNCTION ask_approval();
