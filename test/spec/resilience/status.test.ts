import { expect, test } from 'vitest'
import { providers } from '../../../src/shared/providers.ts'
import { openClient } from '../../kit/client.ts'
import { databaseUrl } from '../../kit/database-url.ts'
import { eventually } from '../../kit/eventually.ts'
import { hour, openFixture } from '../../kit/fixture.ts'

const fixture = await openFixture()
const status = () => fixture.rest('GET', '/status')

test('200 without a token: operational, with every part and every operator', async () => {
  await eventually(async () => expect((await status()).body['data'].ledger.proven_at).not.toBe(null))
  const { status: code, body } = await status()
  expect(code).toBe(200)
  expect(body).toEqual({
    success: true,
    request_id: expect.any(String),
    data: {
      status: 'operational',
      version: '1.0.0',
      environment: 'sandbox',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      components: {
        database: 'operational',
        jobs: 'operational',
        payments_out: 'operational',
        payments_out_reason: null,
      },
      ledger: { status: 'operational', proven_at: expect.any(String), age_seconds: expect.any(Number) },
      operators: providers.map((operator) => ({
        payment_method: operator,
        collect: 'operational',
        disburse: 'operational',
      })),
    },
  })
})

test('a wrong token is ignored', async () => {
  expect((await fixture.rest('GET', '/status', { token: 'nonsense' })).status).toBe(200)
})

test('time follows the sandbox clock', async () => {
  const begun = Date.now()
  const before = Date.parse((await status()).body['data'].time)
  await fixture.advance(hour)
  const after = Date.parse((await status()).body['data'].time)
  expect(after - before).toBeGreaterThanOrEqual(hour)
  expect(after).toBeLessThanOrEqual(before + hour + (Date.now() - begun))
})

test('an operator that is down makes the service degraded, not down', async () => {
  const shop = await fixture.merchant()
  await fixture.outage('OperatorB', 'refuse')
  for (let failures = 0; failures < 5; failures += 1) await fixture.pay(shop, { payment_method: 'OperatorB' })
  await fixture.outage('OperatorB', 'none')
  const { status: code, body } = await status()
  expect(code).toBe(200)
  expect(body['data'].status).toBe('degraded')
  const word = (name: string) => (name === 'OperatorB' ? 'down' : 'operational')
  expect(body['data'].operators).toEqual(
    providers.map((name) => ({ payment_method: name, collect: word(name), disburse: word(name) })),
  )
})

test('503 while the database is out of reach, and 200 when it is back', async () => {
  const { url } = fixture.database
  const name = new URL(url).pathname.slice(1)
  const server = await openClient(databaseUrl(url, 'postgres'))
  try {
    await server.query(`alter database ${name} with allow_connections false`)
    await server.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name])
    await eventually(async () => {
      const { status: code, body } = await status()
      expect(code).toBe(503)
      expect(body).toMatchObject({
        success: false,
        data: { status: 'down', components: { database: 'down' } },
      })
    })
    const pay = await fixture.rest('GET', '/payment/status/any')
    expect(pay.status).toBeGreaterThanOrEqual(500)
    expect(pay.body['message']).not.toContain(name)
  } finally {
    await server.query(`alter database ${name} with allow_connections true`)
  }
  await eventually(async () => expect((await status()).status).toBe(200))
})
