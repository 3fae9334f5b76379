-- The member behind an actor, `member:7` or `api_key:12`: the member itself, or the member who was shown the
-- key. 0 if there is no such member.
CREATE OR REPLACE FUNCTION acting_member(merchant int, actor text) RETURNS int LANGUAGE sql STABLE
  SET search_path = public, pg_temp AS $$
  SELECT coalesce(CASE split_part(actor, ':', 1) WHEN 'member' THEN split_part(actor, ':', 2)::int
    WHEN 'api_key' THEN (
      SELECT k.issued_to_id FROM api_key k WHERE k.id = split_part(actor, ':', 2)::int
        AND k.merchant_id = merchant) END, 0)
$$;
