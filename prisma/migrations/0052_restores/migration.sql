-- AlterTable
ALTER TABLE "api_key" ADD COLUMN     "suspended_at" TIMESTAMPTZ(3);

-- AlterTable
ALTER TABLE "payments_out_halt" ADD COLUMN     "restored_epoch" INTEGER;

-- CreateTable
CREATE TABLE "installation" (
    "singleton" BOOLEAN NOT NULL DEFAULT true,
    "id" UUID NOT NULL DEFAULT gen_random_uuid(),
    "epoch" INTEGER NOT NULL DEFAULT 1,
    "system_identifier" TEXT NOT NULL,
    "timeline" INTEGER NOT NULL,
    "database_oid" TEXT NOT NULL,
    "restored_at" TIMESTAMPTZ(3),

    CONSTRAINT "installation_pkey" PRIMARY KEY ("singleton")
);

-- CreateTable
CREATE TABLE "database_epoch" (
    "epoch" INTEGER NOT NULL,
    "began_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "reason" TEXT NOT NULL,
    "data_until" TIMESTAMPTZ(3),
    "last_api_key_id" INTEGER NOT NULL,
    "keys_handled_at" TIMESTAMPTZ(3),
    "accepted_at" TIMESTAMPTZ(3),
    "outcome" JSONB,

    CONSTRAINT "database_epoch_pkey" PRIMARY KEY ("epoch")
);

-- CreateTable
CREATE TABLE "event_gap" (
    "merchant_id" INTEGER NOT NULL,
    "epoch" INTEGER NOT NULL,
    "after_position" BIGINT NOT NULL,
    "last_position" BIGINT NOT NULL,

    CONSTRAINT "event_gap_pkey" PRIMARY KEY ("merchant_id","epoch")
);

-- CreateTable
CREATE TABLE "credential_change" (
    "id" BIGSERIAL NOT NULL,
    "api_key_id" INTEGER NOT NULL,

    CONSTRAINT "credential_change_pkey" PRIMARY KEY ("id")
);

-- Below: written by hand. What the schema language cannot say.

-- A database that was put back knows nothing of what was done after the backup. It must be noticed before anything happens:
-- money that left may leave again, and ids, positions and secrets of what was lost would get another meaning.

ALTER TABLE "installation"
  ADD CONSTRAINT "installation_singleton" CHECK ("singleton"),
  ADD CONSTRAINT "installation_epoch" CHECK ("epoch" > 0);
ALTER TABLE "event_gap" ADD CONSTRAINT "event_gap_positions" CHECK ("last_position" > "after_position" AND "after_position" >= 0);
SELECT wall_in('event_gap');
GRANT SELECT ON "installation", "database_epoch", "event_gap", "credential_change" TO payments_service;
GRANT UPDATE ("keys_handled_at") ON "database_epoch" TO payments_service;
GRANT SELECT ("suspended_at") ON "api_key" TO payments_merchant;

-- Which database this is, by facts that change when it is put back: the server's own identifier (another cluster), its
-- timeline (recovered to a point in time, or promoted), and the database's oid (dropped and made again, or copied).
CREATE FUNCTION database_identity(OUT system_identifier text, OUT timeline int, OUT database_oid text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  SELECT c.system_identifier::text INTO system_identifier FROM pg_control_system() c;
  BEGIN
    timeline := ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int;
  EXCEPTION WHEN OTHERS THEN
    -- A hosted server may not offer the names of its log files; the control file is behind until the next checkpoint.
    SELECT c.timeline_id INTO timeline FROM pg_control_checkpoint() c;
  END;
  SELECT d.oid::text INTO database_oid FROM pg_database d WHERE d.datname = current_database();
END $$;

-- Which installation this database holds, and whether it stands where its epoch began. A database that no service was
-- started on yet records where it is.
CREATE FUNCTION open_installation(
  OUT id uuid, OUT epoch int, OUT system_identifier text, OUT timeline int, OUT database_oid text, OUT restored_at timestamptz,
  OUT moved text
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  here record;
BEGIN
  here := database_identity();
  IF NOT EXISTS (SELECT FROM installation) THEN
    INSERT INTO installation (system_identifier, timeline, database_oid)
    VALUES (here.system_identifier, here.timeline, here.database_oid) ON CONFLICT DO NOTHING;
  END IF;
  SELECT i.id, i.epoch, i.restored_at, concat_ws('; ',
    CASE WHEN i.system_identifier <> here.system_identifier
      THEN format('it is on server %s and was on server %s', here.system_identifier, i.system_identifier) END,
    CASE WHEN i.system_identifier = here.system_identifier AND i.timeline <> here.timeline
      THEN format('its server is on timeline %s and was on timeline %s', here.timeline, i.timeline) END,
    CASE WHEN i.system_identifier = here.system_identifier AND i.database_oid <> here.database_oid
      THEN format('its oid is %s and was %s', here.database_oid, i.database_oid) END)
  INTO id, epoch, restored_at, moved FROM installation i;
  moved := nullif(moved, '');
  system_identifier := here.system_identifier;
  timeline := here.timeline;
  database_oid := here.database_oid;
END $$;

-- Begins the epoch after `known`, as a restore was noticed: in one transaction no money leaves any more, and nothing that is
-- made from now on gets an id or a position that something lost may have had. Where another node was first nothing happens.
-- Bound: 10,000 ids a second since the last event, four times what one server was measured to make, and a million.
CREATE FUNCTION begin_epoch(known int, why text) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  now_epoch int;
  until timestamptz;
  ids bigint;
  seq record;
BEGIN
  -- No event is numbered meanwhile.
  PERFORM pg_advisory_xact_lock(72707370);
  SELECT i.epoch INTO now_epoch FROM installation i FOR UPDATE;
  IF now_epoch <> known THEN RETURN now_epoch; END IF;
  now_epoch := now_epoch + 1;
  SELECT e.created_at INTO until FROM event e ORDER BY e.id DESC LIMIT 1;
  ids := 1000000 + 10000 * greatest(0, ceil(extract(epoch FROM service_now() - coalesce(until, service_now()))))::bigint;

  UPDATE installation i SET epoch = now_epoch, restored_at = coalesce(i.restored_at, now()),
    (system_identifier, timeline, database_oid) = (SELECT d.system_identifier, d.timeline, d.database_oid FROM database_identity() d);
  INSERT INTO database_epoch (epoch, reason, data_until, last_api_key_id)
  VALUES (now_epoch, why, until, (SELECT coalesce(max(k.id), 0) FROM api_key k));
  INSERT INTO payments_out_halt (reason, restored_epoch)
  VALUES (left('restored: ' || why || '. Run "npm run admin -- restore accept".', 1000), now_epoch) ON CONFLICT DO NOTHING;

  FOR seq IN
    SELECT format('%I.%I', s.schemaname, s.sequencename)::regclass AS name, coalesce(s.last_value, 0) AS last,
      s.data_type = 'bigint'::regtype AS is_big
    FROM pg_sequences s WHERE s.schemaname = 'public'
  LOOP
    PERFORM setval(seq.name, seq.last + CASE WHEN seq.is_big THEN ids ELSE 1000000 END);
  END LOOP;

  INSERT INTO event_gap (merchant_id, epoch, after_position, last_position)
  SELECT m.id, now_epoch, coalesce(h.position, 0), (div(coalesce(h.position, 0) + ids, 1000000) + 1) * 1000000
  FROM merchant m LEFT JOIN stream_head h ON h.merchant_id = m.id;
  INSERT INTO stream_head AS h (merchant_id, position)
  SELECT g.merchant_id, g.last_position FROM event_gap g WHERE g.epoch = now_epoch
  ON CONFLICT (merchant_id) DO UPDATE SET position = excluded.position;
  -- Positions have no gap but this one, which its merchant is told of.
  INSERT INTO event (merchant_id, type, data, created_at)
  SELECT g.merchant_id, 'security_alert', jsonb_build_object('kind', 'database_restored', 'message', format(
    'The service was restored from a backup. What happened after %s may be lost: check your payments, keys, team and '
      || 'settings. The sequence of events goes on behind %s; events from %s to %s that you received before are not on record.',
    coalesce(to_char(until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), 'an unknown time'),
    g.last_position, g.after_position + 1, g.last_position)), service_now()
  FROM event_gap g WHERE g.epoch = now_epoch ORDER BY g.merchant_id;

  PERFORM sequence_events(2147483647);

  -- A link that was used after the backup must not work again: its person asks for another one.
  UPDATE member_secret SET invitation_expires_at = least(invitation_expires_at, now()), reset_expires_at = least(reset_expires_at, now())
  WHERE invitation_hash IS NOT NULL OR reset_hash IS NOT NULL;
  RETURN now_epoch;
END $$;

-- Ends the time after a restore: money may leave again, unless it was halted for another reason before. False where nothing
-- waits to be accepted, or the epoch is another one by now.
CREATE FUNCTION accept_restore(known int, what jsonb, why text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  UPDATE installation i SET restored_at = NULL WHERE i.epoch = known AND i.restored_at IS NOT NULL;
  IF NOT FOUND THEN RETURN false; END IF;
  UPDATE database_epoch e SET accepted_at = now(), outcome = CASE WHEN e.epoch = known THEN what END WHERE e.accepted_at IS NULL;
  UPDATE payments_out_halt h SET lifted_reason = why, lifted_at = now() WHERE h.lifted_at IS NULL AND h.restored_epoch IS NOT NULL;
  RETURN true;
END $$;

-- As before, and nothing is lifted while a restore waits to be accepted.
CREATE OR REPLACE FUNCTION resume_payments_out(why text) RETURNS boolean
LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  WITH lifted AS (
    UPDATE payments_out_halt SET lifted_reason = why, lifted_at = now()
    WHERE lifted_at IS NULL AND NOT EXISTS (SELECT FROM installation i WHERE i.restored_at IS NOT NULL) RETURNING id
  ) SELECT EXISTS (SELECT FROM lifted)
$$;

-- Writes down that a credential was replaced or ended: nodes keep a copy outside of the database.
CREATE FUNCTION note_credential_change() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  INSERT INTO credential_change (api_key_id) VALUES (NEW.id);
  RETURN NULL;
END $$;
CREATE TRIGGER "api_key_changed" AFTER UPDATE OF "version", "revoked_at" ON "api_key" FOR EACH ROW
  WHEN (OLD."version" <> NEW."version" OR OLD."revoked_at" IS DISTINCT FROM NEW."revoked_at")
  EXECUTE FUNCTION note_credential_change();

-- As before; a gap that a restore made is no fault, and no other gap passes for one.
CREATE OR REPLACE FUNCTION audit_balances(anew boolean) RETURNS TABLE (invariant text, merchant_id int, problem text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan SET jit = off SET work_mem = '64MB' SET enable_seqscan = on AS $$
#variable_conflict use_column
DECLARE
  since_movement bigint := coalesce((SELECT p.movement_id FROM audit_point p WHERE NOT anew), 0);
BEGIN
  RETURN QUERY
  WITH moved AS (
    SELECT m.merchant_id,
      sum(CASE 'available'::ledger_account WHEN m.credit THEN m.amount WHEN m.debit THEN -m.amount ELSE 0 END) AS available,
      sum(CASE 'reserved'::ledger_account WHEN m.credit THEN m.amount WHEN m.debit THEN -m.amount ELSE 0 END) AS reserved,
      sum(CASE 'suspense'::ledger_account WHEN m.debit THEN m.amount WHEN m.credit THEN -m.amount ELSE 0 END) AS receivable
    FROM movement m WHERE m.id > since_movement GROUP BY m.merchant_id
  ), rebuilt AS (
    SELECT merchant_id, coalesce(p.available, 0) + coalesce(m.available, 0) AS available,
      coalesce(p.reserved, 0) + coalesce(m.reserved, 0) AS reserved,
      coalesce(p.receivable, 0) + coalesce(m.receivable, 0) AS receivable
    FROM (SELECT * FROM audit_proven WHERE NOT anew) p FULL JOIN moved m USING (merchant_id)
  )
  SELECT 'balances_equal_movements', merchant_id, CASE WHEN b.available IS NULL THEN 'has movements but no balance'
    ELSE format('balance says available %s, reserved %s%s; its movements say %s, %s%s', b.available, b.reserved,
      ', receivable ' || nullif(b.receivable, 0), coalesce(r.available, 0), coalesce(r.reserved, 0),
      ', ' || nullif(r.receivable, 0)) END
  FROM merchant_balance b FULL JOIN rebuilt r USING (merchant_id)
  WHERE (b.available, b.reserved, b.receivable)
    IS DISTINCT FROM (coalesce(r.available, 0), coalesce(r.reserved, 0), coalesce(r.receivable, 0));

  RETURN QUERY
  SELECT 'no_balance_below_zero', b.merchant_id,
    format('available %s, reserved %s, receivable %s', b.available, b.reserved, b.receivable)
  FROM merchant_balance b WHERE b.available < 0 OR b.reserved < 0 OR b.receivable < 0;

  -- Of a merchant that owes nothing is available.
  RETURN QUERY
  SELECT 'debts_are_paid_first', b.merchant_id, format('available %s, and %s are owed', b.available, b.receivable)
  FROM merchant_balance b WHERE b.receivable > 0 AND b.available > 0;

  RETURN QUERY
  SELECT 'events_tell_every_change', h.merchant_id, format('positions end at %s, with %s of %s events after %s',
    h.position, found.count, h.position - found.since, found.since)
  FROM stream_head h
  LEFT JOIN (SELECT * FROM audit_proven WHERE NOT anew) p USING (merchant_id)
  CROSS JOIN LATERAL (
    SELECT coalesce(p.position, 0) AS since, count(*) AS count, coalesce(max(e.position), 0) AS last,
      (SELECT coalesce(sum(g.last_position - g.after_position), 0) FROM event_gap g
       WHERE g.merchant_id = h.merchant_id AND g.after_position >= coalesce(p.position, 0)) AS skipped
    FROM event e WHERE e.merchant_id = h.merchant_id AND e.position > coalesce(p.position, 0)
  ) found
  WHERE (anew OR h.position <> coalesce(p.position, 0))
    AND (found.count <> h.position - found.since - found.skipped OR found.last <> h.position);
END $$;

-- As before, and so is this.
CREATE OR REPLACE FUNCTION audit_positions(
  from_merchant int, from_position bigint, most int,
  OUT to_merchant int, OUT to_position bigint, OUT merchants int[], OUT problems text[]
) LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_custom_plan SET jit = off SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
  read int;
BEGIN
  SELECT count(*), (array_agg(p.merchant_id ORDER BY p.merchant_id DESC, p.position DESC))[1],
    (array_agg(p.position ORDER BY p.merchant_id DESC, p.position DESC))[1]
  INTO read, to_merchant, to_position FROM (
    SELECT e.merchant_id, e.position FROM event e
    WHERE (e.merchant_id, e.position) > (from_merchant, from_position) AND e.position IS NOT NULL
    ORDER BY e.merchant_id, e.position LIMIT most) p;
  IF read < most THEN to_merchant := NULL; END IF;
  SELECT coalesce(array_agg(f.merchant_id), '{}'), coalesce(array_agg(f.problem), '{}') INTO merchants, problems FROM (
    SELECT p.merchant_id, format('position %s does not follow %s', p.position, p.before) AS problem FROM (
      SELECT p.merchant_id, p.position, lag(p.position, 1, CASE WHEN p.merchant_id = from_merchant THEN from_position ELSE 0 END)
        OVER (PARTITION BY p.merchant_id ORDER BY p.position) AS before
      FROM (
        SELECT e.merchant_id, e.position FROM event e
        WHERE (e.merchant_id, e.position) > (from_merchant, from_position) AND e.position IS NOT NULL
    ORDER BY e.merchant_id, e.position LIMIT most) p
    ) p WHERE p.position <> p.before + 1 AND NOT EXISTS (
      SELECT FROM event_gap g
      WHERE g.merchant_id = p.merchant_id AND g.after_position = p.before AND g.last_position = p.position - 1)
    UNION ALL
    SELECT h.merchant_id, format('positions end at %s, and the last event has %s', h.position, coalesce(last.position, 0))
    FROM stream_head h LEFT JOIN LATERAL (
      SELECT max(e.position) AS position FROM event e WHERE e.merchant_id = h.merchant_id
    ) last ON true
    WHERE h.merchant_id >= from_merchant AND (to_merchant IS NULL OR h.merchant_id < to_merchant)
      AND h.position IS DISTINCT FROM coalesce(last.position, 0)
  ) f;
END $$;

REVOKE EXECUTE ON FUNCTION database_identity, open_installation, begin_epoch, accept_restore, note_credential_change FROM PUBLIC;
GRANT EXECUTE ON FUNCTION database_identity, open_installation, begin_epoch, accept_restore TO payments_service;
