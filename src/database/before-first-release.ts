import type pg from 'pg'
import { inShortTries } from './ownership.ts'

// Until 28 November 2026 the baseline was six migrations. This module brings their databases over, the data
// folder of a sandbox for example. It is deleted, with its test, after the first release.

/** The migrations that became the baseline, and the checksum of the first. */
const folded = [
  '0001_baseline',
  '0002_fewer_rights',
  '0003_balance_snapshots',
  '0004_due_requests',
  '0005_numbered_events',
  '0007_transaction_hours',
]
const firstChecksum = '9337929643e351d4459b0e624cf8bd1023ac649d5e4f272330125d5eba706b72'

/** Whether the six migrations made the database. @param client a session that acts as the owner */
export async function canBeFolded(client: pg.Client): Promise<boolean> {
  const { rowCount } = await client.query(
    `select from _prisma_migrations where finished_at is not null and rolled_back_at is null
     having array_agg(migration_name::text order by migration_name) = $1 and bool_or(checksum = $2)`,
    [folded, firstChecksum],
  )
  return rowCount === 1
}

/**
 * Makes a database of the six migrations one of the new baseline, in one transaction. Its own functions first
 * end the work that only older databases had: events without a position, hours that were not counted yet.
 * @param client a session that acts as the owner
 * @returns whether there was such a database
 */
export async function foldMigrations(
  client: pg.Client,
  { name, checksum }: { name: string; checksum: string },
  lockTries: number,
): Promise<boolean> {
  if (!(await canBeFolded(client))) return false
  await inShortTries(client, lockTries, async () => {
    await client.query(changes)
    await client.query('delete from _prisma_migrations where migration_name <> $1', [name])
    await client.query('update _prisma_migrations set checksum = $1', [checksum])
  })
  return true
}

const changes = `
  DO $$ BEGIN
    WHILE sequence_events(1000) > 0 LOOP END LOOP;
    WHILE fill_transaction_hours(64) LOOP END LOOP;
    WHILE compact_transaction_counts(20000) > 0 LOOP END LOOP;
    IF EXISTS (SELECT FROM transaction_hour_fill WHERE end_bucket IS NULL OR next_bucket < end_bucket)
      OR EXISTS (SELECT FROM transaction_count_change)
    THEN RAISE EXCEPTION 'another process of the service uses the database: stop it, and start again'; END IF;
  END $$;

  DROP FUNCTION sequence_events, record_audit, fill_transaction_hours, verify_transaction_counts,
    verify_transaction_hours;
  DROP TABLE transaction_hour_fill;
  ALTER TABLE transaction_count_change ALTER COLUMN hour SET NOT NULL;

  DROP TRIGGER event_guard ON event;
  DROP INDEX event_unnumbered;
  ALTER TABLE event ALTER COLUMN position SET NOT NULL;

  UPDATE webhook_endpoint w SET delivered_to = coalesce((SELECT e.position FROM event e
    WHERE e.merchant_id = w.merchant_id AND e.created_at < w.created_at ORDER BY e.position DESC LIMIT 1), 0)
  WHERE delivered_to IS NULL;
  ALTER TABLE webhook_endpoint ALTER COLUMN delivered_to SET NOT NULL`
