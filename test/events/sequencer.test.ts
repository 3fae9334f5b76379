import type pg from 'pg'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { listen, openDatabase } from '../../src/database/client.ts'
import { type Feed, openFeed } from '../../src/events/feed.ts'
import { type Sequencer, startSequencer } from '../../src/events/sequencer.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { makeMerchant } from '../kit/merchants.ts'
import { useTestDatabase } from '../kit/database.ts'
import { eventually } from '../kit/eventually.ts'
import { stopPolls } from '../kit/stop-polls.ts'
import { fillLog, onOwnBehalf, sequenceAll, upTo, writeEvents } from '../kit/event-log.ts'

const db = await useTestDatabase()
const { pool } = db.database
/** A second process. */
const other = db.secondProcess()
const log = createLog('silent')
const started: { close(): Promise<void> | void }[] = []

beforeEach(() => sequenceAll(db.owner))
afterEach(async () => {
  for (const each of started.splice(0).toReversed()) await each.close()
})

/** A process: its sequencer, its feed, and the listener that wakes the feed. */
async function process(on: pg.Pool): Promise<{ sequencer: Sequencer; feed: Feed }> {
  const feed = onOwnBehalf(openFeed(on, log))
  const sequencer = startSequencer(on, log)
  const listening = Promise.withResolvers<void>()
  const listener = listen({
    connection: db.connection,
    channels: ['events'],
    onNotification: (_channel, merchants) => feed.notify(merchants),
    onConnect: () => listening.resolve(),
    log: () => {},
  })
  started.push(feed, sequencer, listener)
  await listening.promise
  return { sequencer, feed }
}

async function positions(merchantId: number): Promise<bigint[]> {
  const { rows } = await pool.query<{ position: bigint }>(
    'SELECT position FROM event WHERE merchant_id = $1 ORDER BY position',
    [merchantId],
  )
  return rows.map((row) => row.position)
}

/** Reads 1, 2, 3, ... to `last`; leaves at random moments and comes back with its last cursor. */
async function restlessReader(feed: Feed, merchantId: number, last: bigint): Promise<bigint[]> {
  const seen: bigint[] = []
  let cursor = 0n
  while (cursor < last) {
    const stop = new AbortController()
    const patience = 1 + Math.floor(Math.random() * 30)
    const timer = setTimeout(() => stop.abort(), Math.random() * 200)
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

test('12 writers, two sequencers, leaving readers: 1 to N, none missed, none twice', async () => {
  const [a, b] = [await process(pool), await process(other.pool)]
  const merchants = await Promise.all([0, 1, 2].map(() => makeMerchant(pool)))
  const ids = merchants.map(({ merchantId }) => merchantId)
  const writers = Array.from({ length: 12 }, (_, n) =>
    Array.from({ length: 12 }, (_none, step) => ({
      ids: Array.from({ length: 1 + ((n * 5 + step) % 7) }, (_no, k) => ids[(n + step + k) % 3] ?? 0),
      holdMs: Math.random() < 0.3 ? Math.random() * 30 : 0,
    })),
  )
  const total = (id: number) =>
    writers.flat().reduce((sum, step) => sum + step.ids.filter((each) => each === id).length, 0)
  const wide = openDatabase({ connection: db.connection, poolMax: 12, role: null, log: () => {} })
  const writing = Promise.all(
    writers.map(async (steps, n) => {
      for (const step of steps) {
        await writeEvents(wide.pool, step.ids, step.holdMs)
        const { sequencer } = n % 2 ? a : b
        sequencer.notify()
      }
    }),
  )
  const reading = Promise.all(
    ids.flatMap((id) =>
      [a.feed, b.feed, a.feed].map(async (feed) => ({
        id,
        seen: await restlessReader(feed, id, BigInt(total(id))),
      })),
    ),
  )
  await writing
  await wide.close()
  for (const { id, seen } of await reading) expect(seen).toEqual(upTo(total(id)))
  for (const id of ids) expect(await positions(id)).toEqual(upTo(total(id)))
  const lastPositions = await pool.query(
    'SELECT merchant_id, position FROM event_log_position WHERE merchant_id = ANY ($1)',
    [ids],
  )
  expect(lastPositions.rows.toSorted((x, y) => x.merchant_id - y.merchant_id)).toEqual(
    ids.toSorted((x, y) => x - y).map((id) => ({ merchant_id: id, position: BigInt(total(id)) })),
  )
}, 40_000)

test('positions follow the order of creation, by any sequencer', async () => {
  const { merchantId } = await makeMerchant(pool)
  await db.owner.query(
    `INSERT INTO event (merchant_id, type, data, created_at)
     SELECT $1, 'payment_pending', '{}', now() FROM generate_series(1, 300)`,
    [merchantId],
  )
  // Several small runs at once: they wait for each other.
  const counts = await Promise.all(
    Array.from({ length: 8 }, async (_, n) => {
      const { rows } = await (n % 2 ? pool : other.pool).query<{ n: number }>(
        'SELECT sequence_events(50) AS n',
      )
      return rows[0]?.n
    }),
  )
  expect(counts.filter((count) => count === 50)).toHaveLength(6)
  expect(counts.filter((count) => count === 0)).toHaveLength(2)
  const { rows } = await db.owner.query(
    `SELECT count(*) FILTER (WHERE position <> nth)::int AS wrong FROM (
       SELECT position, row_number() OVER (ORDER BY id) AS nth FROM event WHERE merchant_id = $1) e`,
    [merchantId],
  )
  expect(rows).toEqual([{ wrong: 0 }])
})

test('an uncommitted event has no number and delays no other event', async () => {
  const { merchantId } = await makeMerchant(pool)
  const slow = await db.owner.connect()
  await slow.query('BEGIN')
  const insert = `INSERT INTO event (merchant_id, type, data, created_at)
    VALUES ($1, 'payment_pending', $2, now())`
  await slow.query(insert, [merchantId, { n: 'slow' }])
  await db.owner.query(insert, [merchantId, { n: 'quick' }])
  await sequenceAll(db.owner)
  expect(await positions(merchantId)).toEqual([1n])
  await slow.query('COMMIT')
  slow.release()
  await sequenceAll(db.owner)
  const { rows } = await pool.query(
    `SELECT data->>'n' AS n FROM event WHERE merchant_id = $1 ORDER BY position`,
    [merchantId],
  )
  expect(rows).toEqual([{ n: 'quick' }, { n: 'slow' }])
})

test('a backlog larger than one run is numbered without another notification', async () => {
  stopPolls()
  const { merchantId } = await makeMerchant(pool)
  await db.owner.query(
    `INSERT INTO event (merchant_id, type, data, created_at)
     SELECT $1, 'payment_pending', '{}', now() FROM generate_series(1, 2500)`,
    [merchantId],
  )
  const { sequencer } = await process(pool)
  sequencer.notify()
  await eventually(async () => expect(await positions(merchantId)).toContain(2_500n))
})

test('events that a dead process left unnumbered get numbers at the next poll of another one', async () => {
  const { merchantId } = await makeMerchant(pool)
  await process(pool)
  await writeEvents(db.owner, [merchantId, merchantId])
  const begun = performance.now()
  while (!(await positions(merchantId)).includes(2n) && performance.now() - begun < 5_000) {
    await db.owner.query('SELECT pg_sleep(0.05)')
  }
  expect(await positions(merchantId)).toEqual([1n, 2n])
})

test('a closed sequencer numbers nothing more', async () => {
  const { merchantId } = await makeMerchant(pool)
  const sequencer = startSequencer(pool, log)
  await sequencer.close()
  await writeEvents(db.owner, [merchantId])
  sequencer.notify()
  await db.owner.query('SELECT pg_sleep(0.05)')
  expect(await positions(merchantId)).toEqual([null])
})

test('numbering notifies the merchants concerned, or without names beyond 500 merchants', async () => {
  const notified: string[] = []
  const listening = Promise.withResolvers<void>()
  let received = Promise.withResolvers<void>()
  const listener = listen({
    connection: db.connection,
    channels: ['events'],
    onNotification: (_channel, merchants) => {
      notified.push(merchants)
      received.resolve()
    },
    onConnect: () => listening.resolve(),
    log: () => {},
  })
  started.push(listener)
  await listening.promise
  const { merchantId } = await makeMerchant(pool)
  await fillLog(db.owner, merchantId, 3)
  await received.promise
  received = Promise.withResolvers<void>()
  const { rows } = await db.owner.query<{ id: number }>(
    `INSERT INTO merchant (name) SELECT 'Many' FROM generate_series(1, 501) RETURNING id`,
  )
  await writeEvents(
    db.owner,
    rows.map(({ id }) => id),
  )
  await sequenceAll(db.owner)
  await received.promise
  expect(notified).toEqual([String(merchantId), '*'])
})
