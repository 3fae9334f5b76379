import type pg from 'pg'
import { expect, test, vi } from 'vitest'
import { asMerchant } from '../../../src/database/merchant-pool.ts'
import { withClient } from '../../kit/client.ts'
import { eventually } from '../../kit/eventually.ts'
import { customer, openFixture } from '../../kit/fixture.ts'
import { only, type EntryShown, timelinesOn } from '../../kit/timelines.ts'

// The longest timelines, and how they are read.

vi.mock(import('../../../src/requests/schedule.ts'), async (original) =>
  (await import('../../kit/quick-polls.ts')).quickPolls(await original()),
)

const fixture = await openFixture()
const { owner, database } = fixture.database
const shop = await fixture.merchant()
const { timeline, settled } = timelinesOn(fixture)
/** A payment at an operator that never calls back. */
const polled = () => ({ payment_method: 'OperatorC', customer_phone: customer('00', '02') })

test('of more than 50 entries the oldest questions are left out, then the oldest attempts', async () => {
  const others = (entries: EntryShown[]) => entries.filter(({ kind }) => !/QUESTIONED|WEBHOOK/.test(kind))
  const { transaction_id: id } = await fixture.paid(shop, polled())
  await settled(id, 'success', shop)
  const known = others(await timeline(id, shop))
  await owner.query(
    `INSERT INTO operator_exchange (merchant_id, request_id, operation, method, path, status, request_body,
       response_body, duration_ms, at)
     SELECT r.merchant_id, r.id, 'query', 'GET', '/', 200, '', '', n, service_now() + n * interval '1 minute'
     FROM operator_request r, generate_series(1, 150) AS n WHERE r.transaction_id = $1`,
    [id],
  )
  const numbersOf = (entries: EntryShown[], kind: string) =>
    only(entries, kind).map(({ durationMs }) => durationMs)
  const upTo = (last: number, count: number) => Array.from({ length: count }, (_, n) => last - count + 1 + n)
  const questioned = await timeline(id, shop)
  expect(others(questioned)).toEqual(known)
  expect(numbersOf(questioned, 'OPERATOR_QUESTIONED')).toEqual(upTo(150, 50 - known.length))

  const { token } = shop
  const body = { url: 'https://shop.example/', events: ['payment_received'] }
  const { id: endpoint } = (await fixture.rest('POST', '/webhooks', { token, body })).body['data']
  await fixture.rest('PUT', `/webhooks/${endpoint}`, { token, body: { is_active: false } })
  await owner.query(
    `INSERT INTO webhook_delivery (merchant_id, endpoint_id, position, type, status, attempts_total, ended_at,
       created_at)
     SELECT e.merchant_id, $2, e.position, e.type, 'dead', 150, now(), now() FROM event e
     WHERE e.type = 'payment_received' AND e.data->>'transaction_id' = $1`,
    [String(id), endpoint],
  )
  const attempt = (from: number, to: number) =>
    owner.query(
      `INSERT INTO webhook_attempt (delivery_id, nth, merchant_id, status_code, duration_ms, answer, at)
       SELECT d.id, n, d.merchant_id, 500, n, '', service_now() + n * interval '1 second'
       FROM webhook_delivery d, generate_series($2::int, $3::int) AS n WHERE d.endpoint_id = $1`,
      [endpoint, from, to],
    )
  await attempt(1, 30)
  const told = await timeline(id, shop)
  expect(others(told)).toEqual(known)
  expect(numbersOf(told, 'WEBHOOK_SENT')).toEqual(upTo(30, 30))
  expect(numbersOf(told, 'OPERATOR_QUESTIONED')).toEqual(upTo(150, 20 - known.length))
  await attempt(31, 150)
  const full = await timeline(id, shop)
  expect(others(full)).toEqual(known)
  expect(numbersOf(full, 'WEBHOOK_SENT')).toEqual(upTo(150, 50 - known.length))
})

test('timelines are read by the indexes: no row of another payment is read', async () => {
  const ids: unknown[] = []
  for (let n = 0; n < 3; n += 1) ids.push((await fixture.paid(shop, polled())).transaction_id)
  for (const id of ids) await settled(id, 'success', shop)
  // The last answers of the operator may be recorded between two of these statements.
  await eventually(async () => {
    const { rows: own } = await owner.query<{ name: string; n: number }>(
      `WITH r AS (SELECT id FROM operator_request WHERE transaction_id = ANY ($1))
       SELECT 'event' AS name, count(*)::int AS n FROM event
         WHERE (data->>'transaction_id')::bigint = ANY ($1)
       UNION ALL SELECT 'operator_callback', count(*)::int FROM operator_callback JOIN r ON r.id = request_id
       UNION ALL SELECT 'operator_exchange', count(*)::int FROM operator_exchange JOIN r ON r.id = request_id
       UNION ALL SELECT 'transaction', 3`,
      [ids],
    )
    const counts = async (client: pg.PoolClient) => {
      const { rows } = await client.query<{ name: string; n: number }>(
        `SELECT relname AS name, (seq_tup_read + idx_tup_fetch)::int AS n FROM pg_stat_xact_user_tables
         WHERE relname = ANY ($1) ORDER BY 1`,
        [own.map(({ name }) => name)],
      )
      return rows
    }
    await asMerchant(shop.merchantId, () =>
      withClient(database.merchantPool, async (client) => {
        await client.query('BEGIN')
        const before = new Map((await counts(client)).map(({ name, n }) => [name, n]))
        await client.query('SELECT * FROM timeline_of($1, $2, true, 50)', [shop.merchantId, ids])
        const read = (await counts(client)).map(({ name, n }) => ({ name, n: n - (before.get(name) ?? 0) }))
        expect(read).toEqual(own)
      }),
    )
  })
})
