-- Begins the epoch after `known`, because a restore was noticed or declared. In one transaction it halts
-- payments out, and raises all ids and positions, so that no new row gets an id or a position that a lost row
-- may have had. Where another node was first, the function changes nothing. It assumes that at most 10,000
-- ids a second (four times the measured maximum of one server) were lost since the last event, plus a
-- million; of a sequence of type int, a million in all. @returns the epoch of the database afterwards
-- Granted to payments_service.
CREATE OR REPLACE FUNCTION begin_epoch(known int, why text) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  now_epoch int;
  until timestamptz;
  ids bigint;
  seq record;
BEGIN
  -- Wait until every transaction that appended an event has ended, and let no other append one: a position
  -- that is given meanwhile would stand inside the gap.
  LOCK TABLE event_log_position IN SHARE ROW EXCLUSIVE MODE;
  SELECT i.epoch INTO now_epoch FROM installation i FOR UPDATE;
  IF now_epoch <> known THEN RETURN now_epoch; END IF;
  now_epoch := now_epoch + 1;
  SELECT e.created_at INTO until FROM event e ORDER BY e.id DESC LIMIT 1;
  ids := 1000000 + 10000 * greatest(0, ceil(extract(epoch FROM service_now() - coalesce(until,
    service_now()))))::bigint;

  UPDATE installation i SET epoch = now_epoch, restored_at = coalesce(i.restored_at, now()),
    (system_identifier, timeline, database_oid) = (SELECT d.system_identifier, d.timeline, d.database_oid
      FROM database_identity() d);
  INSERT INTO database_epoch (epoch, reason, data_until, last_api_key_id)
  VALUES (now_epoch, why, until, (SELECT coalesce(max(k.id), 0) FROM credential k));
  INSERT INTO payments_out_halt (reason, restored_epoch)
  VALUES (left('restored: ' || why || '. Run "npm run admin -- restore accept".', 1000), now_epoch)
    ON CONFLICT DO NOTHING;

  FOR seq IN
    SELECT format('%I.%I', s.schemaname, s.sequencename)::regclass AS name, coalesce(s.last_value, 0) AS last,
      s.data_type = 'bigint'::regtype AS is_big
    FROM pg_sequences s WHERE s.schemaname = 'public'
  LOOP
    PERFORM setval(seq.name, seq.last + CASE WHEN seq.is_big THEN ids ELSE 1000000 END);
  END LOOP;

  INSERT INTO event_gap (merchant_id, epoch, after_position, last_position)
  SELECT m.id, now_epoch, coalesce(h.position, 0), (div(coalesce(h.position, 0) + ids, 1000000) + 1) * 1000000
  FROM merchant m LEFT JOIN event_log_position h ON h.merchant_id = m.id;
  INSERT INTO event_log_position AS h (merchant_id, position)
  SELECT g.merchant_id, g.last_position FROM event_gap g WHERE g.epoch = now_epoch
  ON CONFLICT (merchant_id) DO UPDATE SET position = excluded.position;
  -- Only a restore makes a gap in the positions; this event tells the merchant about the gap.
  PERFORM append_events(array_agg((g.merchant_id, 'security_alert', jsonb_build_object(
    'kind', 'database_restored', 'message', format(
    'The service was restored from a backup. What happened after %s may be lost: check your payments, keys, '
      || 'team and settings. The sequence of events goes on after %s; events from %s to %s that you '
      || 'received before are not on record.',
    coalesce(to_char(until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), 'an unknown time'),
    g.last_position, g.after_position + 1, g.last_position)))::new_event), service_now())
  FROM event_gap g WHERE g.epoch = now_epoch;

  -- A link that was used after the backup must not work again: open invitations, resets and sign-in links
  -- expire.
  UPDATE member_secret SET invitation_expires_at = least(invitation_expires_at, now()),
    reset_expires_at = least(reset_expires_at, now()),
    sign_in_expires_at = least(sign_in_expires_at, now())
  WHERE invitation_hash IS NOT NULL OR reset_hash IS NOT NULL OR sign_in_hash IS NOT NULL;
  RETURN now_epoch;
END $$;
