import { afterAll, beforeAll, expect, test } from 'vitest'
import { awaitEvent } from '../../src/events/await-event.ts'
import { openFeed } from '../../src/events/feed.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { makeMerchant } from '../kit/merchants.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'
import { fillLog, onOwnBehalf } from '../kit/event-log.ts'
import { stopPolls } from '../kit/stop-polls.ts'

let db: TestDatabase
beforeAll(async () => {
  db = await createTestDatabase()
})
afterAll(() => db.drop())

/** A log with this many events, and a reader at its end. */
async function readerAfter(count: number) {
  const { merchantId } = await makeMerchant(db.database.pool)
  await fillLog(db.owner, merchantId, count)
  const feed = onOwnBehalf(openFeed(db.database.pool, createLog('silent')))
  const { after } = await feed.start(merchantId, null)
  const until = new AbortController()
  /** Waits for the event with this number in its call of `fillLog`. */
  const wait = (n: number) => {
    const filter = { types: new Set(['payment_pending'] as const), data: { reference: [String(n)] } }
    return awaitEvent(feed, merchantId, after, filter, until.signal)
  }
  return { merchantId, feed, until, wait }
}

test('a reader finds an event that came between its look at the log and its wait', async () => {
  const { merchantId, feed, wait } = await readerAfter(3)
  await fillLog(db.owner, merchantId, 2)
  expect(await wait(2)).toMatchObject({ position: 5n })
  feed.close()
})

test('a reader wakes on the notification, long before the next poll', async () => {
  stopPolls()
  const { merchantId, feed, wait } = await readerAfter(1)
  const waiting = wait(3)
  await fillLog(db.owner, merchantId, 3)
  feed.notify(String(merchantId))
  expect(await waiting).toMatchObject({ position: 4n })
  feed.close()
})

test('an event arrives by the poll where the notification is lost', async () => {
  const { merchantId, feed, wait } = await readerAfter(1)
  const waiting = wait(1)
  await fillLog(db.owner, merchantId, 1)
  expect(await waiting).toMatchObject({ position: 2n })
  feed.close()
})

test('a wait whose time is over ends at once, without an event', async () => {
  stopPolls()
  const { feed, until, wait } = await readerAfter(1)
  const waiting = wait(1)
  until.abort()
  expect(await waiting).toBeNull()
  feed.close()
})
