-- The member who invited this one: the page of the invitation shows the name. Null where a program or the
-- platform invited.
ALTER TABLE member_secret ADD COLUMN invited_by_id integer;
ALTER TABLE member_secret ADD CONSTRAINT member_secret_invited_by_id_merchant_id_fkey
  FOREIGN KEY (invited_by_id, merchant_id) REFERENCES team_member (id, merchant_id)
  ON UPDATE CASCADE ON DELETE RESTRICT;
CREATE INDEX member_secret_invited_by_id_idx ON member_secret (invited_by_id);
