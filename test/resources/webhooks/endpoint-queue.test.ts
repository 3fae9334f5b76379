import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { eventually } from '../../kit/eventually.ts'
import { sweepWebhooks } from '../../../src/resources/webhooks/due.ts'
import { limits } from '../../../src/shared/limits.ts'
import { startTestApp, type TestApp } from '../../kit/app.ts'
import { addEndpoint, enable, happen, receive, stateOf, upTo } from '../../kit/webhooks/endpoint-queue.ts'
import { useBounds } from '../../kit/use-bounds.ts'

let base: TestApp
beforeAll(async () => {
  base = await startTestApp({ WEBHOOK_RETRY_SCHEDULE: '10,60', WEBHOOK_DISABLE_AFTER: '20' })
})
afterAll(() => base.close())

const advance = (seconds: number) => base.app.services.sandbox?.advanceClock(seconds * 1_000)
const sequences = (calls: readonly { sequence: number }[]) => calls.map(({ sequence }) => sequence)

/** Waits until an endpoint has this state. */
const stands = (id: number, expected: object) =>
  eventually(async () => expect(await stateOf(base.database, id)).toMatchObject(expected))

/** The state of an endpoint once no event of it is due. */
async function settledState(id: number) {
  await eventually(async () => (await stateOf(base.database, id))?.due !== true)
  return { isActive: (await stateOf(base.database, id))?.isActive === true }
}

async function endpointTo(url: string, types?: readonly string[]) {
  const { merchantId } = await base.merchant()
  const { master } = base.app.services.access
  const id = await addEndpoint(base.database, master, { merchantId, url, ...(types && { types }) })
  return { merchantId, id }
}

test('events arrive in their order, once each, and none is left', async () => {
  const receiver = await receive()
  const { merchantId, id } = await endpointTo(receiver.url)
  for (const count of [1, 250, 3]) await happen(base.database, merchantId, count)
  await stands(id, { delivered: 254, attempts: 254, pending: 0, due: null })
  expect(sequences(receiver.calls)).toEqual(upTo(254))
})

test('an event without an endpoint for its type or its merchant makes no delivery', async () => {
  const receiver = await receive()
  const { merchantId, id } = await endpointTo(receiver.url, ['payout_failed'])
  const other = await base.merchant()
  await happen(base.database, other.merchantId, 20)
  await happen(base.database, merchantId, 3)
  await happen(base.database, merchantId, 1, 'payout_failed')
  await stands(id, { delivered: 1, attempts: 1, pending: 0 })
  expect(receiver.calls).toMatchObject([{ event: 'payout_failed', sequence: 4 }])
  const { rowCount } = await base.database.owner.query(
    'SELECT FROM webhook_delivery WHERE merchant_id = $1',
    [other.merchantId],
  )
  expect(rowCount).toBe(0)
})

test('a failed event waits while others go on, and is given up after the last attempt', async () => {
  const receiver = await receive(({ sequence }) => (sequence === 2 ? 500 : 204))
  const { merchantId, id } = await endpointTo(receiver.url)
  await happen(base.database, merchantId, 3)
  await stands(id, { delivered: 2, pending: 1, failures: 0, due: false })
  expect(sequences(receiver.calls)).toEqual([1, 2, 3])
  await advance(12)
  await stands(id, { attempts: 4, pending: 1, failures: 1, due: false })
  await advance(67)
  await stands(id, { attempts: 5, delivered: 2, dead: 1, due: null })
  expect(new Set(receiver.calls.filter(({ sequence }) => sequence === 2).map((call) => call.id)).size).toBe(1)
  const { rows } = await base.database.owner.query(
    `SELECT nth, status_code, error, answer, address
     FROM webhook_attempt a JOIN webhook_delivery d ON d.id = a.delivery_id
     WHERE d.endpoint_id = $1 AND d.position = 2 ORDER BY nth`,
    [id],
  )
  const attempt = { status_code: 500, error: null, answer: '', address: '127.0.0.1' }
  expect(rows).toEqual([1, 2, 3].map((nth) => ({ nth, ...attempt })))
})

test('410 ends an event at once; 503 pauses the endpoint for as long as it asks', async () => {
  const busy = (response: ServerResponse) => response.writeHead(503, { 'retry-after': '30' }).end()
  const receiver = await receive(({ sequence }, nth) => (sequence === 1 ? 410 : nth === 2 ? busy : 204))
  const { merchantId, id } = await endpointTo(receiver.url)
  await happen(base.database, merchantId, 4)
  await stands(id, { attempts: 2, dead: 1, pending: 3, failures: 2, due: false })
  await advance(20)
  await happen(base.database, merchantId, 1)
  expect(await stateOf(base.database, id)).toMatchObject({ attempts: 2, due: false })
  await advance(11)
  await stands(id, { delivered: 4, dead: 1, due: null })
  expect(sequences(receiver.taken)).toEqual([2, 3, 4, 5])
})

test('an outage of 500 events costs 20 calls; enabled again, all arrive in their order', async () => {
  let isDown = true
  const receiver = await receive(() => (isDown ? 500 : 204))
  const { merchantId, id } = await endpointTo(receiver.url)
  await happen(base.database, merchantId, 250)
  for (let round = 0; (await settledState(id)).isActive; round += 1) {
    if (round === 3) await happen(base.database, merchantId, 250)
    await advance(67)
  }
  await stands(id, { failures: 20, isActive: false })
  expect(receiver.calls).toHaveLength(20)
  // From the fifth on the oldest alone, until it is given up, then the next.
  expect(sequences(receiver.calls)).toEqual([1, 2, 3, 4, 5, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 6, 7, 7])
  const { rows } = await base.database.owner.query(
    `SELECT data->>'kind' AS kind, data->'webhook_id' AS webhook_id FROM event
     WHERE merchant_id = $1 AND type = 'security_alert'`,
    [merchantId],
  )
  expect(rows).toEqual([{ kind: 'webhook_disabled', webhook_id: id }])
  await advance(100_000)
  isDown = false
  await enable(base.database, id)
  await stands(id, { delivered: 501, pending: 0, dead: 0, failures: 0, due: null })
  expect(sequences(receiver.calls.slice(20))).toEqual(upTo(501))
})

test('an endpoint that recovers gets the waiting events, in order', async () => {
  let isDown = true
  const receiver = await receive(() => (isDown ? 500 : 204))
  const { merchantId, id } = await endpointTo(receiver.url)
  await happen(base.database, merchantId, 8)
  await stands(id, { failures: 5, due: false })
  isDown = false
  await advance(12)
  await stands(id, { delivered: 8, failures: 0, due: null })
  expect(sequences(receiver.taken)).toEqual(upTo(8))
})

test('an endpoint changed while its receiver is slow gets the other events at its new address', async () => {
  const old = await receive(() => (response) => setTimeout(() => response.writeHead(204).end(), 1_100))
  const receiver = await receive()
  const { merchantId, id } = await endpointTo(old.url)
  await happen(base.database, merchantId, 3)
  await eventually(() => expect(old.calls).toHaveLength(1))
  const changed = [merchantId, id, receiver.url]
  await base.database.owner.query('SELECT change_webhook($1, $2, $3, NULL, NULL)', changed)
  await stands(id, { delivered: 3 })
  expect([old, receiver].map(({ calls }) => sequences(calls))).toEqual([[1], [2, 3]])
})

test('a hanging endpoint delays no other endpoint', async () => {
  // It hangs for longer than the test may take.
  useBounds(limits, { webhookDeadlineMs: 3_600_000 }, onTestFinished)
  const hanging = await receive(() => () => {})
  const others = await Promise.all(Array.from({ length: 4 }, () => receive()))
  const stuck = await endpointTo(hanging.url)
  const quick = await Promise.all(others.map(({ url }) => endpointTo(url)))
  await happen(base.database, stuck.merchantId, 20)
  await eventually(() => expect(hanging.calls).toMatchObject([{ sequence: 1 }]))
  // A busy queue finds new events by itself.
  const jobs = () =>
    base.database.owner.query(
      `SELECT pg_sequence_last_value(
         pg_get_serial_sequence('graphile_worker._private_jobs', 'id')::regclass)`,
    )
  const { rows: before } = await jobs()
  for (let round = 0; round < 5; round += 1) await happen(base.database, stuck.merchantId, 2)
  expect((await jobs()).rows).toEqual(before)
  for (let round = 0; round < 5; round += 1) {
    for (const { merchantId } of quick) await happen(base.database, merchantId, 20)
  }
  await Promise.all(quick.map(({ id }) => stands(id, { delivered: 100 })))
  expect(hanging.calls).toHaveLength(1)
})

test('80 fresh endpoints of 16 merchants that hang hold no slot that a healthy one needs', async () => {
  // None is given up while the others are checked, even on a slow machine.
  useBounds(limits, { webhookDeadlineMs: 10 * limits.webhookDeadlineMs }, onTestFinished)
  const hanging = await receive(() => () => {})
  const { master } = base.app.services.access
  for (let merchant = 0; merchant < 16; merchant += 1) {
    const { merchantId } = await base.merchant()
    const to = { merchantId, url: hanging.url }
    for (let endpoint = 0; endpoint < 5; endpoint += 1) await addEndpoint(base.database, master, to)
    await happen(base.database, merchantId, 1)
  }
  await eventually(() => expect(hanging.calls).toHaveLength(80))
  const healthy = await receive()
  const { merchantId, id } = await endpointTo(healthy.url)
  await happen(base.database, merchantId, 3)
  await stands(id, { delivered: 3 })
  expect(sequences(healthy.calls)).toEqual([1, 2, 3])
  // Every one of the others still hangs in its first attempt.
  const { rows } = await base.database.owner.query<{ n: number }>(
    'SELECT sum(failure_count)::int AS n FROM webhook_endpoint WHERE url = $1',
    [hanging.url],
  )
  expect(rows[0]?.n).toBe(0)
})

test('one of two processes works on a queue at a time, however many jobs are enqueued', async () => {
  const receiver = await receive(() => (response) => setTimeout(() => response.writeHead(204).end(), 10))
  const { merchantId, id } = await endpointTo(receiver.url)
  await base.sibling()
  for (let round = 0; round < 25; round += 1) {
    await happen(base.database, merchantId, 4)
    await base.database.owner.query(`SELECT enqueue_each('webhooks.deliver', 'endpointId', $1::int[])`, [
      [id],
    ])
    await sleep(20)
  }
  await stands(id, { delivered: 100, attempts: 100, due: null })
  expect(sequences(receiver.calls)).toEqual(upTo(100))
})

test('an event that waited for 30 days is given up, and one done 90 days ago is deleted', async () => {
  const receiver = await receive(({ sequence }) => (sequence === 2 ? 500 : 204))
  const { merchantId, id } = await endpointTo(receiver.url)
  await happen(base.database, merchantId, 3)
  await stands(id, { delivered: 2, pending: 1, due: false })
  const sweep = () => base.database.owner.query('SELECT sweep_webhooks(1000, 30, 90)')
  const age = (days: number) =>
    base.database.owner.query(
      `UPDATE webhook_delivery SET created_at = created_at - $2 * interval '1 day',
         ended_at = ended_at - $2 * interval '1 day' WHERE endpoint_id = $1`,
      [id, days],
    )
  await age(29)
  await sweep()
  expect(await stateOf(base.database, id)).toMatchObject({ delivered: 2, pending: 1, dead: 0, attempts: 3 })
  await age(2)
  await sweep()
  expect(await stateOf(base.database, id)).toMatchObject({ delivered: 2, pending: 0, dead: 1, attempts: 3 })
  // A replayed event has thirty days again.
  await base.database.owner.query('SELECT replay_events($1, $2, 2, 2, NULL)', [merchantId, id])
  await sweep()
  await stands(id, { delivered: 2, pending: 1, dead: 0, attempts: 4 })
  await age(60)
  await sweep()
  expect(await stateOf(base.database, id)).toMatchObject({ delivered: 0, dead: 1, attempts: 2 })
})

test('events that waited too long are all deleted, however many an endpoint has', async () => {
  const { merchantId, id } = await endpointTo('http://127.0.0.1:1/')
  const { owner } = base.database
  await owner.query('SELECT change_webhook($1, $2, NULL, NULL, false)', [merchantId, id])
  await happen(base.database, merchantId, 250)
  const early = `UPDATE webhook_delivery SET created_at = service_now() - interval '31 days'`
  await owner.query(`${early} WHERE endpoint_id = $1`, [id])
  let isMore = true
  while (isMore) isMore = await sweepWebhooks(base.app.services)
  expect(await stateOf(base.database, id)).toMatchObject({ pending: 0, dead: 250, attempts: 0 })
})
