import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import type { EventType, LogEvent } from '../../src/events/catalogue.ts'
import { type EventFilter, changesOf, isWanted, typesAbout } from '../../src/events/filter.ts'
import { openFeed } from '../../src/events/feed.ts'
import { eventSpanMax, readWanted } from '../../src/events/read-page.ts'
import { createStream, eventRingMax } from '../../src/events/stream.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'
import { onOwnBehalf } from '../kit/event-log.ts'
import { makeMerchant } from '../kit/merchants.ts'
import { stopPolls } from '../kit/stop-polls.ts'
import { between, readTableReads } from '../kit/table-reads.ts'

// A narrowed reader of the log gets the wanted events alone, and the service reads few others for it.

let db: TestDatabase
let merchantId: number
beforeAll(async () => {
  db = await createTestDatabase()
  merchantId = (await makeMerchant(db.database.pool)).merchantId
  await writeLog(merchantId, count)
})
afterAll(() => db.drop())

/** More than two spans, so that a statement ends between wanted events. */
const count = eventSpanMax * 2 + 5_000

interface Row {
  position: number
  type: EventType
  data: Record<string, string | number>
}

const rows: Row[] = []

/** Event number n: mostly payments, some payouts and batches, few that failed or came by a link. */
function rowOf(n: number): Omit<Row, 'position'> {
  const common = { reference: `r-${n % 500}`, status: n % 7_000 === 0 ? 'failed' : 'success' }
  if (n % 9_001 === 2)
    return { type: 'payment_link_used', data: { payment_link_id: 3, transaction_id: 12, reference: 'r-12' } }
  if (n % 50 === 0) return { type: 'payout_completed', data: { payout_id: n % 400, ...common } }
  // Without a reference and a status.
  if (n % 50 === 2) return { type: 'payment_pending', data: { transaction_id: n % 3_000 } }
  if (n % 10 === 1)
    return { type: 'batch_progress', data: { batch_id: n % 100 === 1 ? 1 : 2, status: 'processing' } }
  const type = common.status === 'failed' ? 'payment_failed' : 'payment_received'
  return { type, data: { transaction_id: n % 3_000, ...common } }
}

async function writeLog(of: number, until: number): Promise<void> {
  for (let n = 1; n <= until; n += 1) rows.push({ position: n, ...rowOf(n) })
  await db.owner.query(
    `SELECT append_events(array_agg(($1, e->>'type', e->'data')::new_event ORDER BY n), now())
     FROM jsonb_array_elements($2::jsonb) WITH ORDINALITY AS x (e, n)`,
    [of, JSON.stringify(rows)],
  )
  await db.owner.query('SELECT announce_events($1, $2)', [[of], until])
}

const all = { types: new Set(rows.map(({ type }) => type)), data: {} }
const filters: [string, EventFilter, (row: Row) => boolean][] = [
  [
    'a rare type',
    { ...all, types: new Set(['payment_link_used']) },
    ({ type }) => type === 'payment_link_used',
  ],
  ['a kind', { types: typesAbout('payout'), data: {} }, ({ type }) => type === 'payout_completed'],
  [
    'one payment',
    changesOf('transaction', 12),
    ({ type, data }) => /payment_(received|failed|pending)/.test(type) && data['transaction_id'] === 12,
  ],
  ['one batch', changesOf('batch', 2), ({ data }) => data['batch_id'] === 2],
  [
    'statuses',
    { types: typesAbout('transaction'), data: { status: ['failed', 'expired'] } },
    ({ type }) => type === 'payment_failed',
  ],
  [
    'a reference and a status',
    { types: typesAbout('transaction'), data: { reference: ['r-0'], status: ['failed'] } },
    ({ type, data }) => type === 'payment_failed' && data['reference'] === 'r-0',
  ],
  [
    'one payout and a status',
    { types: typesAbout('payout'), data: { payout_id: ['0'], status: ['failed'] } },
    ({ data }) => data['payout_id'] === 0 && data['status'] === 'failed',
  ],
  ['nothing', { types: typesAbout('transaction'), data: { reference: ['undefined'] } }, () => false],
]

/** Reads to the end of the log, and counts what the table handed out. */
async function readAll(filter: EventFilter, after: number) {
  let handed = 0
  const query = async (statement: pg.QueryConfig) => {
    const answer = await db.database.pool.query(statement)
    handed += answer.rows.length
    return answer
  }
  const feed = onOwnBehalf(openFeed({ query } as unknown as pg.Pool, createLog('silent')))
  const stop = new AbortController()
  const seen: LogEvent[] = []
  const reading = { merchantId, after: BigInt(after), signal: stop.signal, filter }
  for await (const event of feed.subscribe(reading)) {
    seen.push(event)
    if (event.position === BigInt(count)) break
  }
  feed.close()
  return { seen, wanted: seen.filter((event) => isWanted(filter, event)), handed }
}

describe.each(filters)('a reader of %s', (_what, filter, isExpected) => {
  test.each([0, 1, 12, eventSpanMax - 1, eventSpanMax, 23_999, count - 1])(
    'from %s on gets the wanted events to the last, and few others',
    async (after) => {
      stopPolls()
      const { seen, wanted, handed } = await readAll(filter, after)
      const expected = rows.filter((row) => row.position > after && isExpected(row))
      expect(wanted).toMatchObject(
        expected.map(({ position, ...row }) => ({ ...row, position: BigInt(position) })),
      )
      expect(seen.map(({ position }) => position)).toEqual(
        seen.map(({ position }) => position).toSorted((a, b) => Number(a - b)),
      )
      const pages = Math.ceil((count - after) / eventSpanMax) + Math.ceil(expected.length / 100)
      expect(handed).toBeLessThanOrEqual(expected.length + pages + 1)
    },
  )
})

test.each([
  ['an unknown type', { ...all, types: new Set<EventType>(['security_alert']) }],
  ['an unknown payment', changesOf('transaction', 999_999)],
])('the pages of %s end at the newest event of the log', async (_what, filter) => {
  const positions: bigint[] = []
  for (;;) {
    const page = await readWanted(db.database.pool, merchantId, positions.at(-1) ?? 0n, filter)
    if (page.length === 0) break
    positions.push(...page.map(({ position }) => position))
  }
  expect(positions.at(-1)).toBe(BigInt(count))
})

test.each<[string, EventFilter, number]>([
  // A span is read twice: its positions, then its events.
  ['a rare type', { ...all, types: new Set(['security_alert']) }, eventSpanMax * 2],
  ['one payment', changesOf('transaction', 12), 12],
])('a statement for %s reads only the part of the table that it passes over', async (_what, filter, most) => {
  await db.owner.query('ANALYZE event')
  const { pool } = db.database
  const before = await readTableReads(db.owner, pool)
  await readWanted(pool, merchantId, 0n, filter)
  const after = await readTableReads(db.owner, pool)
  const ofEvents = [...between(before.read, after.read)].filter(([name]) => name === 'event')
  expect(ofEvents[0]?.[1]).toBeLessThanOrEqual(most + 2)
})

test('events that a reader does not want wake it once a second at most', async () => {
  const clock = vi.spyOn(performance, 'now').mockReturnValue(0)
  onTestFinished(() => clock.mockRestore())
  const added: LogEvent[] = []
  const stream = createStream(() => Promise.resolve(added.splice(0)))
  await stream.advance(0n)
  let [position, wakes] = [0n, 0]
  const wait = () => {
    const { signal } = new AbortController()
    void stream.changed(stream.version(), signal, changesOf('payout', 1)).then(() => (wakes += 1))
  }
  const happens = async (type: EventType) => {
    position += 1n
    added.push({ position, type, data: { payout_id: 1 } } as unknown as LogEvent)
    await stream.advance(position)
    return wakes
  }
  wait()
  clock.mockReturnValue(999)
  expect([await happens('batch_draft'), await happens('payment_pending')]).toEqual([0, 0])
  expect(await happens('payout_pending')).toBe(1)
  wait()
  clock.mockReturnValue(1_999)
  expect(await happens('batch_draft')).toBe(2)
})

test('memory gives a narrowed reader the same events, and the last of each page', async () => {
  const { merchantId: other } = await makeMerchant(db.database.pool)
  const feed = onOwnBehalf(openFeed(db.database.pool, createLog('silent')))
  const stop = new AbortController()
  const reading = { merchantId: other, after: 0n, signal: stop.signal }
  const filter = { types: typesAbout('payout'), data: {} }
  const narrowed = feed.subscribe({ ...reading, filter })
  const first = narrowed.next()
  // From now on, new events are in memory.
  feed.notify(String(other))
  await new Promise((resolve) => setTimeout(resolve, 50))
  const events = rows.slice(0, eventRingMax / 2)
  await db.owner.query(
    `SELECT append_events(array_agg(($1, e->>'type', e->'data')::new_event ORDER BY n), now())
     FROM jsonb_array_elements($2::jsonb) WITH ORDINALITY AS x (e, n)`,
    [other, JSON.stringify(events)],
  )
  await db.owner.query('SELECT announce_events($1, 1000)', [[other]])
  feed.notify(String(other))
  const seen = [(await first).value as LogEvent]
  while (seen.at(-1)?.position !== BigInt(events.length)) seen.push((await narrowed.next()).value as LogEvent)
  const wanted = seen.filter((event) => isWanted(filter, event)).map(({ position }) => Number(position))
  expect(wanted).toEqual(
    events.flatMap(({ type, position }) => (type === 'payout_completed' ? [position] : [])),
  )
  expect(seen.length).toBeLessThan(events.length / 10)
  stop.abort()
  await narrowed.return()
  feed.close()
})
