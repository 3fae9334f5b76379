-- The link that the first screen of a sandbox shows: it signs the owner in once. Only its hash is stored.
ALTER TABLE member_secret
  ADD COLUMN sign_in_hash bytea,
  ADD COLUMN sign_in_expires_at timestamptz(3);
CREATE UNIQUE INDEX member_secret_sign_in_hash_key ON member_secret (sign_in_hash);
