import { globSync, readFileSync } from 'node:fs'
import type pg from 'pg'
import { afterEach, expect, test } from 'vitest'
import { type Database, listen, openDatabase } from '../../src/database/client.ts'
import { type Feed, openFeed } from '../../src/events/feed.ts'
import { transact } from '../../src/database/transact.ts'
import { announcerBounds, startAnnouncer } from '../../src/events/announcer.ts'
import { events } from '../../src/events/catalogue.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { borrow } from '../kit/client.ts'
import { makeMerchant } from '../kit/merchants.ts'
import { useTestDatabase } from '../kit/database.ts'
import { eventually } from '../kit/eventually.ts'
import { randomFrom } from '../kit/random.ts'
import { seed } from '../kit/seeds.ts'
import { stopPolls } from '../kit/stop-polls.ts'
import { useBounds } from '../kit/use-bounds.ts'
import { fillLog, onOwnBehalf, readPositions, upTo, writeEvents } from '../kit/event-log.ts'

useBounds(announcerBounds, { pollMs: 500 })
const db = await useTestDatabase()
const { pool } = db.database
/** A second process. */
const other = db.secondProcess()
const log = createLog('silent')
const started: { close(): Promise<void> | void }[] = []

afterEach(async () => {
  for (const each of started.splice(0).toReversed()) await each.close()
})

/** A process: its feed, the listener that wakes the feed, and the announcer of what `writes` commits. */
async function process(on: pg.Pool, writes = on): Promise<Feed> {
  const feed = onOwnBehalf(openFeed(on, log))
  const announcer = startAnnouncer(writes, log)
  const listening = Promise.withResolvers<void>()
  const listener = listen({
    connection: db.connection,
    channels: ['events'],
    onNotification: (_channel, merchants) => feed.notify(merchants),
    onConnect: () => listening.resolve(),
    log: () => {},
  })
  started.push(feed, announcer, listener)
  await listening.promise
  return feed
}

async function positions(merchantId: number): Promise<bigint[]> {
  const { rows } = await pool.query<{ position: bigint }>(
    'SELECT position FROM event WHERE merchant_id = $1 ORDER BY position',
    [merchantId],
  )
  return rows.map((row) => row.position)
}

/** Reads 1, 2, 3, ... to `last`; leaves at random moments and comes back with its last cursor. */
async function restlessReader(
  feed: Feed,
  merchantId: number,
  last: bigint,
  random: () => number,
): Promise<bigint[]> {
  const seen: bigint[] = []
  let cursor = 0n
  while (cursor < last) {
    const stop = new AbortController()
    const patience = 1 + Math.floor(random() * 30)
    const timer = setTimeout(() => stop.abort(), random() * 200)
    let taken = 0
    for await (const event of feed.subscribe({ merchantId, after: cursor, signal: stop.signal })) {
      seen.push(event.position)
      cursor = event.position
      taken += 1
      if (taken >= patience || cursor >= last) break
    }
    clearTimeout(timer)
  }
  return seen
}

test('12 writers, two processes, leaving readers: 1 to N, none missed, none twice', async () => {
  const wide = [0, 1].map(() =>
    openDatabase({ connection: db.connection, poolMax: 7, role: null, log: () => {} }),
  ) as [Database, Database]
  started.push(...wide)
  const [a, b] = [await process(pool, wide[0].pool), await process(other.pool, wide[1].pool)]
  const merchants = await Promise.all([0, 1, 2].map(() => makeMerchant(pool)))
  const ids = merchants.map(({ merchantId }) => merchantId)
  const random = randomFrom(seed)
  const writers = Array.from({ length: 12 }, (_, n) =>
    Array.from({ length: 12 }, (_none, step) => ({
      ids: Array.from({ length: 1 + ((n * 5 + step) % 7) }, (_no, k) => ids[(n + step + k) % 3] ?? 0),
      holdMs: random() < 0.3 ? random() * 30 : 0,
    })),
  )
  const total = (id: number) =>
    writers.flat().reduce((sum, step) => sum + step.ids.filter((each) => each === id).length, 0)
  const writing = Promise.all(
    writers.map(async (steps, n) => {
      const { pool: writes } = wide[n % 2 ? 0 : 1]
      for (const step of steps) await writeEvents(writes, step.ids, step.holdMs)
    }),
  )
  const reading = Promise.all(
    ids.flatMap((id, nth) =>
      [a, b, a].map(async (feed, reader) => ({
        id,
        seen: await restlessReader(feed, id, BigInt(total(id)), randomFrom(seed + 1 + 3 * nth + reader)),
      })),
    ),
  )
  await writing
  for (const { id, seen } of await reading) expect(seen).toEqual(upTo(total(id)))
  for (const id of ids) expect(await positions(id)).toEqual(upTo(total(id)))
  const lastPositions = await pool.query(
    'SELECT merchant_id, position FROM event_log_position WHERE merchant_id = ANY ($1)',
    [ids],
  )
  expect(lastPositions.rows.toSorted((x, y) => x.merchant_id - y.merchant_id)).toEqual(
    ids.toSorted((x, y) => x - y).map((id) => ({ merchant_id: id, position: BigInt(total(id)) })),
  )
})

test('a rollback gives a position back; the next event of the merchant waits for the commit', async () => {
  const [{ merchantId }, another] = [await makeMerchant(pool), await makeMerchant(pool)]
  const slow = await borrow(db.owner)
  const append = `SELECT append_events(ARRAY[($1, 'payment_pending', $2)::new_event], now())`
  for (const [end, first] of [
    ['ROLLBACK', 'second'],
    ['COMMIT', 'first'],
  ] as const) {
    await slow.query('BEGIN')
    await slow.query(append, [merchantId, { n: 'first' }])
    const second = db.owner.query(append, [merchantId, { n: 'second' }])
    await db.untilWaiting()
    await db.owner.query(append, [another.merchantId, {}])
    const seen = await positions(merchantId)
    await slow.query(end)
    await second
    const { rows } = await pool.query(
      `SELECT data->>'n' AS n FROM event WHERE merchant_id = $1 AND position > $2 ORDER BY position`,
      [merchantId, seen.length],
    )
    expect(rows[0]).toEqual({ n: first })
  }
  slow.release()
  expect(await positions(merchantId)).toEqual(upTo(3))
  expect(await positions(another.merchantId)).toEqual(upTo(2))
})

test('events of one call have the order of the call, for each merchant', async () => {
  const ids = (await Promise.all([makeMerchant(pool), makeMerchant(pool)])).map((each) => each.merchantId)
  await db.owner.query(
    `SELECT append_events(array_agg((($1::int[])[1 + n % 2], 'payment_pending',
       jsonb_build_object('n', n))::new_event ORDER BY n), now()) FROM generate_series(1, 300) AS n`,
    [ids],
  )
  const { rows } = await db.owner.query(
    `SELECT merchant_id AS id, count(*)::int AS n, bool_and(position = nth) AS "isInOrder" FROM (
       SELECT *, row_number() OVER (PARTITION BY merchant_id ORDER BY (data->>'n')::int) AS nth
       FROM event WHERE merchant_id = ANY ($1)) AS e GROUP BY 1 ORDER BY 1`,
    [ids],
  )
  expect(rows).toEqual(ids.toSorted((x, y) => x - y).map((id) => ({ id, n: 150, isInOrder: true })))
})

test('only append_events writes events', () => {
  const writers = globSync('src/**/*.{sql,ts}').filter((path) =>
    /INSERT INTO "?event"?\s/.test(readFileSync(path, 'utf8')),
  )
  expect(writers).toEqual(['src/events/append_events.sql'])
})

test('a reader gets events that a dead process did not announce at its next poll', async () => {
  const { merchantId } = await makeMerchant(pool)
  const feed = await process(pool)
  const reading = readPositions(feed, merchantId, 0n, 2)
  await writeEvents(db.owner, [merchantId, merchantId])
  expect(await reading).toEqual([1n, 2n])
})

test('a process makes the deliveries that a dead process did not make, each once', async () => {
  const { merchantId } = await makeMerchant(pool)
  await fillLog(db.owner, merchantId, 2)
  await db.owner.query(
    `SELECT register_webhook($1, nextval('webhook_endpoint_id_seq')::int, 'https://shop.example/',
       '{payment_pending}', '', NULL, 5)`,
    [merchantId],
  )
  await Promise.all([process(pool), process(other.pool)])
  await writeEvents(db.owner, [merchantId, merchantId])
  const made = async () => {
    const { rows } = await db.owner.query<{ position: bigint }>(
      'SELECT position FROM webhook_delivery WHERE merchant_id = $1 ORDER BY position',
      [merchantId],
    )
    return rows.map((row) => row.position)
  }
  await eventually(async () => expect(await made()).toEqual([3n, 4n]))
  await writeEvents(db.owner, [merchantId])
  await Promise.all(
    Array.from({ length: 8 }, (_, n) =>
      (n % 2 ? pool : other.pool).query('SELECT announce_events($1, 1000)', [[merchantId]]),
    ),
  )
  expect(await made()).toEqual([3n, 4n, 5n])
})

test('an endpoint that changes its list gets the events until then by its old list', async () => {
  const { merchantId } = await makeMerchant(pool)
  const { rows } = await db.owner.query<{ id: number }>(
    `SELECT id FROM register_webhook($1, nextval('webhook_endpoint_id_seq')::int, 'https://shop.example/',
       '{payment_pending}', '', NULL, 5)`,
    [merchantId],
  )
  await writeEvents(db.owner, [merchantId])
  await db.owner.query(`SELECT change_webhook($1, $2, NULL, '{payout_failed}', NULL)`, [
    merchantId,
    rows[0]?.id,
  ])
  await writeEvents(db.owner, [merchantId])
  await db.owner.query('SELECT announce_events($1, 1000)', [[merchantId]])
  const deliveries = await db.owner.query('SELECT position FROM webhook_delivery WHERE merchant_id = $1', [
    merchantId,
  ])
  expect(deliveries.rows).toEqual([{ position: 1n }])
})

test('a session that commits events announces them at once: every type, without a poll', async () => {
  stopPolls()
  const { merchantId } = await makeMerchant(pool)
  const announcer = startAnnouncer(pool, log)
  announcer.hear(db.owner)
  started.push(announcer)
  const types = Object.keys(events)
  await db.owner.query(
    `SELECT register_webhook($1, nextval('webhook_endpoint_id_seq')::int, 'https://shop.example/', $2, '',
       NULL, 5)`,
    [merchantId, types],
  )
  const made = async () => {
    const { rows } = await db.owner.query<{ type: string }>(
      'SELECT type FROM webhook_delivery WHERE merchant_id = $1 ORDER BY position',
      [merchantId],
    )
    return rows.map(({ type }) => type)
  }
  for (const [nth, type] of types.entries()) {
    await db.owner.query(
      `SELECT append_events(ARRAY[($1::int, $2::text, '{}'::jsonb)::new_event], service_now())`,
      [merchantId, type],
    )
    await eventually(async () => expect(await made()).toEqual(types.slice(0, nth + 1)))
  }
})

test('events are announced after their commit and not before, and a rollback leaves nothing', async () => {
  stopPolls()
  const notified: string[] = []
  const received = await listenTo(notified)
  const [{ merchantId }, undone] = [await makeMerchant(pool), await makeMerchant(pool)]
  const announcer = startAnnouncer(db.owner, log)
  started.push(announcer)
  await expect(
    transact({ pool: db.owner }, async (tx) => {
      await tx.query(
        `SELECT append_events(ARRAY[($1::int, 'payment_pending', '{}'::jsonb)::new_event], now())`,
        [undone.merchantId],
      )
      throw new Error('undone')
    }),
  ).rejects.toThrow('undone')
  await received(1)
  await transact({ pool: db.owner }, async (tx) => {
    await tx.query(
      `SELECT append_events(ARRAY[($1::int, 'payment_pending', '{}'::jsonb)::new_event], now())`,
      [merchantId],
    )
    await tx.query('SELECT pg_sleep(0.05)')
    expect(notified).toEqual([String(undone.merchantId)])
  })
  await received(2)
  expect(notified).toEqual([String(undone.merchantId), String(merchantId)])
  expect([await positions(undone.merchantId), await positions(merchantId)]).toEqual([[], [1n]])
})

test('the sessions of merchants, which no announcer hears, call no function that writes events', async () => {
  const { rows } = await db.owner.query<{ name: string; role: string }>(
    `WITH RECURSIVE writer AS (
       SELECT p.oid, p.proname FROM pg_proc p WHERE p.proname = 'append_events'
       UNION SELECT p.oid, p.proname FROM writer w
       JOIN pg_proc p ON p.prosrc ~ ('\\m' || w.proname || '\\(') AND p.pronamespace = 'public'::regnamespace)
     SELECT w.proname AS name, role FROM writer w,
       unnest('{payments_merchant,payments_service}'::text[]) role
     WHERE has_function_privilege(role, w.oid, 'EXECUTE') ORDER BY 1`,
  )
  expect(rows.filter(({ role }) => role === 'payments_merchant')).toEqual([])
  expect(rows.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['collect_many', 'decide_waiting', 'record_access']),
  )
})

test('a closed announcer announces the events that wait, and no later ones', async () => {
  stopPolls()
  const notified: string[] = []
  const received = await listenTo(notified)
  const [{ merchantId }, later] = [await makeMerchant(pool), await makeMerchant(pool)]
  const announcer = startAnnouncer(db.owner, log)
  await writeEvents(db.owner, [merchantId])
  await writeEvents(db.owner, [later.merchantId])
  await announcer.close()
  await writeEvents(db.owner, [merchantId])
  await received(1)
  await db.owner.query('SELECT pg_sleep(0.05)')
  expect(notified.join()).toBe(`${merchantId},${later.merchantId}`)
})

test('an announcement names the merchants, or none beyond 500 merchants', async () => {
  const notified: string[] = []
  const received = await listenTo(notified)
  await db.owner.query('SELECT announce_events($1, 10)', [[3, 4]])
  await db.owner.query('SELECT announce_events(array_agg(n), 10) FROM generate_series(1, 501) AS n')
  await received(2)
  expect(notified).toEqual(['3,4', '*'])
})

/** Listens to the channel. @returns a function that waits until so many notifications came */
async function listenTo(notified: string[]): Promise<(count: number) => Promise<void>> {
  const listening = Promise.withResolvers<void>()
  const listener = listen({
    connection: db.connection,
    channels: ['events'],
    onNotification: (_channel, merchants) => void notified.push(merchants),
    onConnect: () => listening.resolve(),
    log: () => {},
  })
  started.push(listener)
  await listening.promise
  return (count) => eventually(async () => expect(notified.length).toBeGreaterThanOrEqual(count))
}
