-- Takes at most `most` merchants whose last e-mail is of an earlier day and whose audit log has grown since,
-- and records the day and the position that the new e-mail reports. A merchant that is taken for the first
-- time gets no e-mail today: only the day is recorded (`is_first`).
-- @returns the head of each log, and the receivers of the e-mail
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION take_due_audit_emails(most int) RETURNS TABLE (
  merchant_id int,
  "position" bigint,
  hash bytea,
  proof bytea,
  is_first boolean,
  merchant text,
  locale locale,
  receivers jsonb
)
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH due AS (
    SELECT h.*, l.merchant_id IS NULL AS is_first
    FROM audit_head h LEFT JOIN audit_email l USING (merchant_id)
    WHERE l.merchant_id IS NULL OR l.day < current_date AND l.position < h.position
    ORDER BY h.merchant_id LIMIT most
  ), recorded AS (
    INSERT INTO audit_email (merchant_id, position, day)
    SELECT d.merchant_id, CASE WHEN d.is_first THEN 0 ELSE d.position END, current_date FROM due d
    ON CONFLICT (merchant_id) DO UPDATE SET position = excluded.position, day = excluded.day
  )
  SELECT d.merchant_id, d.position, d.hash, d.proof, d.is_first, m.name, m.locale,
    CASE WHEN m.notification_email IS NOT NULL
      THEN jsonb_build_array(jsonb_build_object('name', m.name, 'address', m.notification_email))
      ELSE coalesce((
        SELECT jsonb_agg(jsonb_build_object('name', t.name, 'address', t.email) ORDER BY t.id)
        FROM team_member t
        WHERE t.merchant_id = m.id AND t.role = 'owner' AND t.status = 'active'), '[]') END
  FROM due d JOIN merchant m ON m.id = d.merchant_id ORDER BY d.merchant_id
$$;
