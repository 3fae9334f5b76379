-- The digest of a change of the settings, which a member approves.
CREATE OR REPLACE FUNCTION settings_change_digest(merchant int, id int, before jsonb, after jsonb)
  RETURNS bytea
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT sha256(convert_to(format('settings:v1|%s|%s|%s|%s', merchant, id, before, after), 'UTF8'))
$$;
