import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { asMerchant } from '../../src/database/merchant-pool.ts'
import type { LogEvent } from '../../src/events/catalogue.ts'
import { type Feed, openFeed, eventRetryMs } from '../../src/events/feed.ts'
import { createStream, eventRingMax } from '../../src/events/stream.ts'
import { limits } from '../../src/shared/limits.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { makeMerchant } from '../kit/merchants.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'
import { fillLog, onOwnBehalf, readPositions, upTo } from '../kit/event-log.ts'
import { stopPolls } from '../kit/stop-polls.ts'

let db: TestDatabase
let pool: pg.Pool
const feeds: Feed[] = []
beforeAll(async () => {
  db = await createTestDatabase()
  pool = db.database.pool
})
afterAll(() => db.drop())
afterEach(() => {
  for (const feed of feeds.splice(0)) feed.close()
})

/** The service's pool, with a count of the rows that it hands out. */
/** @returns also `rest`, which waits until no query runs any more */
function countedPool(): { pool: pg.Pool; rows: () => number; rest: () => Promise<void> } {
  let rows = 0
  let begun = 0
  let ended = 0
  const query = async (statement: pg.QueryConfig) => {
    begun += 1
    const answer = await pool.query(statement)
    ended += 1
    rows += answer.rows.length
    return answer
  }
  const rest = async () => {
    for (let seen = -1; seen !== ended || ended !== begun; await sleep(50)) seen = ended
  }
  return { pool: { query } as unknown as pg.Pool, rows: () => rows, rest }
}

function open(on: pg.Pool = pool): Feed {
  const feed = onOwnBehalf(openFeed(on, createLog('silent')))
  feeds.push(feed)
  return feed
}

describe('a subscription', () => {
  test('replays the log from a cursor, over many pages, and goes on live', async () => {
    const { merchantId } = await makeMerchant(pool)
    await fillLog(db.owner, merchantId, limits.eventPageMax * 3 + 7)
    const feed = open()
    const reading = readPositions(feed, merchantId, 5n, limits.eventPageMax * 3 + 7 - 5 + 10)
    await fillLog(db.owner, merchantId, 10)
    feed.notify(String(merchantId))
    expect(await reading).toEqual(upTo(limits.eventPageMax * 3 + 17, 6))
  })

  test('without a cursor begins with the next event', async () => {
    const { merchantId } = await makeMerchant(pool)
    await fillLog(db.owner, merchantId, 4)
    const feed = open()
    const stop = new AbortController()
    const { after } = await feed.start(merchantId, null)
    expect(after).toBe(4n)
    // An event that happens before the first pull is not missed.
    await fillLog(db.owner, merchantId, 1)
    const next = feed.subscribe({ merchantId, after, signal: stop.signal }).next()
    feed.notify('*')
    expect((await next).value).toMatchObject({ position: 5n, type: 'payment_pending' })
    stop.abort()
  })

  test.each([11n, 1_000_000n, -1n])('refuses a cursor that is not in the log: %s of 10', async (after) => {
    const { merchantId } = await makeMerchant(pool)
    await fillLog(db.owner, merchantId, 10)
    const reading = open().start(merchantId, after)
    await expect(reading).rejects.toMatchObject({ code: 'INVALID_INPUT' })
  })

  test('takes the cursor of the last event, and of a log without events', async () => {
    const { merchantId } = await makeMerchant(pool)
    expect(await readPositionsNow(open(), merchantId, 0n)).toEqual([])
    await fillLog(db.owner, merchantId, 2)
    expect(await readPositionsNow(open(), merchantId, 2n)).toEqual([])
    expect(await readPositions(open(), merchantId, 0n, 2)).toEqual([1n, 2n])
  })

  test('ends at once when it is aborted while it waits', async () => {
    stopPolls()
    const { merchantId } = await makeMerchant(pool)
    const stop = new AbortController()
    const next = open().subscribe({ merchantId, after: 0n, signal: stop.signal }).next()
    await sleep(30)
    stop.abort()
    expect(await next).toEqual({ done: true, value: undefined })
  })

  test('shows a merchant no event of another merchant', async () => {
    const [a, b] = [await makeMerchant(pool), await makeMerchant(pool)]
    const feed = open()
    const stop = new AbortController()
    const newcomer = feed.subscribe({ merchantId: b.merchantId, after: 0n, signal: stop.signal }).next()
    const ownPositions = readPositions(feed, a.merchantId, 0n, 3)
    await fillLog(db.owner, a.merchantId, 3)
    feed.notify('*')
    expect(await ownPositions).toEqual(upTo(3))
    stop.abort()
    expect(await newcomer).toEqual({ done: true, value: undefined })
  })

  test('refuses another merchant and a caller who is not signed in', async () => {
    const [a, b] = [await makeMerchant(pool), await makeMerchant(pool)]
    const feed = openFeed(pool, createLog('silent'))
    feeds.push(feed)
    const { signal } = new AbortController()
    for (const reader of [b.merchantId, null]) {
      const read = () => feed.subscribe({ merchantId: a.merchantId, after: 0n, signal })
      expect(() => asMerchant(reader, read)).toThrow('its own merchant')
      await expect(asMerchant(reader, () => feed.start(a.merchantId, 0n))).rejects.toThrow('its own merchant')
    }
  })

  test('misses no event that comes between its look at the log and its wait', async () => {
    stopPolls()
    const { merchantId } = await makeMerchant(pool)
    let failures = 0
    const query = async (statement: pg.QueryConfig) => {
      const answer = await pool.query(statement)
      if (statement.name === 'read_events' && (failures += 1) === 1) {
        // The page was empty; before the reader learns so, an event comes and its notification is over.
        await fillLog(db.owner, merchantId, 1)
        feed.notify('*')
        await sleep(50)
      }
      return answer
    }
    const feed = open({ query } as unknown as pg.Pool)
    expect(await readPositions(feed, merchantId, 0n, 1)).toEqual([1n])
  })

  test('catches up by its poll where no notification arrives', async () => {
    const { merchantId } = await makeMerchant(pool)
    const reading = readPositions(open(), merchantId, 0n, 3)
    await sleep(50)
    await fillLog(db.owner, merchantId, 3)
    expect(await reading).toEqual(upTo(3))
  })
})

describe('a database that does not answer', () => {
  /** The service's pool; `fails` decides for each read of the log whether it fails. */
  function shakyPool(fails: () => boolean): { pool: pg.Pool; failedAt: number[] } {
    const failedAt: number[] = []
    const query = (statement: pg.QueryConfig) => {
      if (statement.name !== 'read_events' || !fails()) return pool.query(statement)
      failedAt.push(performance.now())
      return Promise.reject(new Error('Connection terminated unexpectedly'))
    }
    return { pool: { query } as unknown as pg.Pool, failedAt }
  }

  test('ends no reader: each reader retries after growing pauses and misses no event', async () => {
    const { merchantId } = await makeMerchant(pool)
    await fillLog(db.owner, merchantId, limits.eventPageMax + 5)
    let failures = 0
    // Before the first page, and once more between two pages.
    const shaky = shakyPool(() => [1, 2, 3, 5].includes((failures += 1)))
    const seen = await readPositions(open(shaky.pool), merchantId, 2n, limits.eventPageMax + 3)
    expect(seen).toEqual(upTo(limits.eventPageMax + 5, 3))
    const [first = 0, second = 0, third = 0] = shaky.failedAt
    expect(second - first).toBeGreaterThanOrEqual(eventRetryMs - 2)
    expect(third - second).toBeGreaterThanOrEqual(2 * eventRetryMs - 2)
    expect(shaky.failedAt).toHaveLength(4)
  })

  test('does not delay the end of a reader that leaves', async () => {
    const { merchantId } = await makeMerchant(pool)
    const shaky = shakyPool(() => true)
    const stop = new AbortController()
    const next = open(shaky.pool).subscribe({ merchantId, after: 0n, signal: stop.signal }).next()
    await sleep(eventRetryMs * 2)
    const failures = shaky.failedAt.length
    stop.abort()
    expect(await next).toEqual({ done: true, value: undefined })
    // The reader ended without waiting for its next read of the log.
    expect(shaky.failedAt).toHaveLength(failures)
  })
})

/** The events that can be read without waiting. */
async function readPositionsNow(feed: Feed, merchantId: number, after: bigint): Promise<bigint[]> {
  const stop = new AbortController()
  const seen: bigint[] = []
  const timer = setTimeout(() => stop.abort(), 150)
  for await (const event of feed.subscribe({ merchantId, after, signal: stop.signal }))
    seen.push(event.position)
  clearTimeout(timer)
  return seen
}

describe('memory and the table give the same events', () => {
  test('readers from every cursor see one log, some from the ring, some from the table', async () => {
    const { merchantId } = await makeMerchant(pool)
    await fillLog(db.owner, merchantId, 20)
    const feed = open()
    const stop = new AbortController()
    // This reader keeps the ring alive, which begins at 21.
    const keeper = feed.subscribe({ merchantId, after: 20n, signal: stop.signal })
    const kept = keeper.next()
    await sleep(30)
    feed.notify(String(merchantId))
    await sleep(30)
    await fillLog(db.owner, merchantId, 40)
    feed.notify(String(merchantId))
    await kept
    const all = await Promise.all(
      Array.from({ length: 60 }, (_, n) => readPositions(feed, merchantId, BigInt(n), 60 - n)),
    )
    for (const [n, seen] of all.entries()) expect(seen).toEqual(upTo(60, n + 1))
    stop.abort()
    await keeper.return()
  })

  test('100 readers at the end of the log read each event from the table once', async () => {
    const { merchantId } = await makeMerchant(pool)
    const counted = countedPool()
    const feed = open(counted.pool)
    const stop = new AbortController()
    const readers = Array.from({ length: 100 }, () => readPositions(feed, merchantId, 0n, 50))
    await counted.rest()
    feed.notify(String(merchantId))
    await counted.rest()
    const before = counted.rows()
    await fillLog(db.owner, merchantId, 50)
    feed.notify(String(merchantId))
    for (const seen of await Promise.all(readers)) expect(seen).toEqual(upTo(50))
    // 50 events, and the last position of the log once per read.
    expect(counted.rows() - before).toBeLessThan(60)
    stop.abort()
  })

  test('a stalled reader holds one page of events, however far the log runs ahead', async () => {
    const { merchantId } = await makeMerchant(pool)
    const count = eventRingMax * 2 + 500
    await fillLog(db.owner, merchantId, 1)
    const counted = countedPool()
    const feed = open(counted.pool)
    const stop = new AbortController()
    const stalled = feed.subscribe({ merchantId, after: 0n, signal: stop.signal })
    expect((await stalled.next()).value).toMatchObject({ position: 1n })
    await fillLog(db.owner, merchantId, count - 1)
    feed.notify(String(merchantId))
    await sleep(200)
    const seen = [1n]
    for await (const event of stalled) {
      seen.push(event.position)
      if (event.position === BigInt(count)) break
    }
    expect(seen).toEqual(upTo(count))
    stop.abort()
  })
})

describe('the stream of one log', () => {
  const event = (position: bigint): LogEvent =>
    ({ position, type: 'payment_pending', data: {}, occurredAt: new Date() }) as unknown as LogEvent
  const never = new AbortController().signal

  function fakeLog() {
    let reads = 0
    const stream = createStream(async (after) => {
      reads += 1
      return Array.from({ length: limits.eventPageMax }, (_, n) => event(after + 1n + BigInt(n)))
    })
    return { stream, reads: () => reads }
  }

  test('keeps only the most recent events', async () => {
    const { stream } = fakeLog()
    await stream.advance(1_000n)
    expect(stream.since(999n)).toBeNull()
    expect(stream.since(1_000n)).toEqual([])
    const end = 1_000n + BigInt(eventRingMax) * 5n
    await stream.advance(end)
    const oldest = end - BigInt(eventRingMax)
    expect(stream.since(oldest - 1n)).toBeNull()
    const page = stream.since(oldest)
    expect(page?.map(({ position }) => position)).toEqual(
      upTo(Number(oldest) + limits.eventPageMax, Number(oldest) + 1),
    )
    expect(stream.since(end - 1n)?.map(({ position }) => position)).toEqual([end])
    expect(stream.since(end)).toEqual([])
  })

  test('reads an announced end once, however many callers announce it', async () => {
    const { stream, reads } = fakeLog()
    await stream.advance(0n)
    await Promise.all(Array.from({ length: 20 }, () => stream.advance(BigInt(limits.eventPageMax))))
    expect(reads()).toBe(1)
  })

  test('wakes a waiting reader, but no reader that has seen the version', async () => {
    const { stream } = fakeLog()
    await stream.advance(0n)
    const version = stream.version()
    const waiting = stream.changed(version, never)
    await stream.advance(1n)
    await waiting
    await stream.changed(version, never)
    const stop = new AbortController()
    let woken = false
    const other = stream.changed(stream.version(), stop.signal).then(() => (woken = true))
    await stream.advance(1n)
    await sleep(5)
    expect(woken).toBe(false)
    stop.abort()
    await other
  })

  test('survives a read that fails: the next read goes on from there', async () => {
    let broken = true
    const stream = createStream(async (after) => {
      if (broken) throw new Error('no database')
      return [event(after + 1n)]
    })
    await stream.advance(0n)
    await expect(stream.advance(3n)).rejects.toThrow('no database')
    broken = false
    await stream.advance(3n)
    expect(stream.since(0n)?.map(({ position }) => position)).toEqual([1n, 2n, 3n])
  })
})
