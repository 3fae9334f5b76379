import { expect, test } from 'vitest'
import { eventually } from '../kit/eventually.ts'
import type { OperatorCall } from '../../src/simulator/calls.ts'
import { scenarios } from '../../src/simulator/scenarios.ts'
import {
  checkoutClient,
  expectHanging,
  gsmaClient,
  minute,
  openBench,
  openReceiver,
  second,
  send,
  word,
} from '../kit/simulator.ts'

test('without a control token there is no control interface; with one, callers must carry it', async () => {
  await using closed = await openBench({ controlToken: '' })
  await using open = await openBench()
  expect((await send(closed.url, 'GET', '/_sim/accounts', { 'x-control-token': '' })).status).toBe(404)
  expect((await send(open.url, 'GET', '/_sim/accounts', { 'x-control-token': 'wrong' })).status).toBe(401)
  expect((await open.control('GET', '/accounts')).status).toBe(200)
  expect((await open.control('GET', '/nothing')).status).toBe(404)
})

test('advancing the clock fires everything due, in order of time, each at its own time', async () => {
  await using bench = await openBench()
  await using receiver = await openReceiver()
  const a = await gsmaClient(bench.url, 'a')
  for (const seconds of ['30', '10', '20']) {
    await a.collect(`+2237000${seconds}01`, { callbackUrl: `${receiver.url}/${seconds}` })
  }
  await bench.advance(minute)
  await receiver.call(3)
  const bodies = receiver.received.map((call) => call.body as { modificationDate: string })
  const order = receiver.received.map((call) => call.path).toSorted()
  expect(order).toEqual(['/10', '/20', '/30'])
  const operations = (await bench.control('GET', '/operations')).body as unknown as {
    createdAt: string
    settledAt: string
  }[]
  const delays = operations.map((row) => Date.parse(row.settledAt) - Date.parse(row.createdAt))
  expect(delays.toSorted((one, other) => one - other).map((ms) => Math.round(ms / second))).toEqual([
    10, 20, 30,
  ])
  expect(new Set(bodies.map((body) => body.modificationDate)).size).toBe(3)
  const { body } = await bench.control('GET', '/clock')
  expect(body['offset_ms']).toBe(minute)
  expect(Date.parse(String(body['now']))).toBeLessThanOrEqual(Date.now() + minute)
})

test.each([{ advance_ms: -1 }, { advance_ms: 1.5 }, { advance_ms: '5' }, {}])(
  'the clock refuses %j',
  async (body) => {
    await using bench = await openBench()
    expect((await bench.control('POST', '/clock', body)).status).toBe(400)
  },
)

test('an outage is one operator refusing, hanging or answering 503, until it ends', async () => {
  await using bench = await openBench()
  const a = await gsmaClient(bench.url, 'a')
  const c = await gsmaClient(bench.url, 'c')
  await bench.control('POST', '/outage', { operator: 'OperatorA', mode: '5xx' })
  const down = await a.collect('+22370000001')
  expect([down.status, down.body['errorCategory']]).toEqual([503, 'serviceUnavailable'])
  await bench.control('POST', '/outage', { operator: 'OperatorA', mode: 'refuse' })
  await expect(a.get('/heartbeat')).rejects.toThrow('fetch failed')
  await bench.control('POST', '/outage', { operator: 'OperatorA', mode: 'hang' })
  await expectHanging(bench, '/op-a/v1.2/mm/heartbeat')
  expect((await c.get('/heartbeat')).status).toBe(200)
  await bench.control('POST', '/outage', { operator: 'OperatorA', mode: 'none' })
  expect((await a.get('/heartbeat')).status).toBe(200)
  expect((await bench.control('GET', '/operations')).body).toEqual([])
  expect((await bench.control('POST', '/outage', { operator: 'OperatorX', mode: 'none' })).status).toBe(400)
})

test('the requests that an operator saw are kept by client reference, without secrets', async () => {
  await using bench = await openBench()
  const a = await gsmaClient(bench.url, 'a')
  await a.collect('+22370090001', {
    reference: 'SEEN',
    correlationId: 'a37ef77a-1111-4222-8333-444455556666',
  })
  await a.collect('+22370090001', { reference: 'OTHER' })
  const seen = (await bench.control('GET', '/requests?clientRef=SEEN')).body as unknown as Record<
    string,
    unknown
  >[]
  expect(seen).toMatchObject([
    {
      operator: 'OperatorA',
      method: 'POST',
      path: '/op-a/v1.2/mm/transactions/type/merchantpay',
      status: 202,
      correlationId: 'a37ef77a-1111-4222-8333-444455556666',
      headers: { authorization: '***', 'x-api-key': '***' },
    },
  ])
  const all = JSON.stringify((await bench.control('GET', '/requests')).body)
  expect(all).not.toContain('sandbox-key-a')
  expect(all).not.toContain(a.headers.authorization)
})

test('a confirmed checkout session without a payer is paid by a passer-by', async () => {
  await using bench = await openBench()
  const b = checkoutClient(bench.url)
  const { body } = await b.session()
  await bench.control('POST', `/transactions/${word(body, 'id')}/confirm`)
  expect((await b.call('GET', `/checkout/sessions/${word(body, 'id')}`)).body['payment_status']).toBe(
    'succeeded',
  )
  expect((await bench.control('POST', '/transactions/none/confirm')).status).toBe(404)
})

test('every book sums to zero after every kind of operation, and no account runs dry', async () => {
  await using bench = await openBench()
  const gsma = await Promise.all((['a', 'c', 'd'] as const).map((letter) => gsmaClient(bench.url, letter)))
  const b = checkoutClient(bench.url)
  const lost = () => undefined
  for (const { code } of scenarios) {
    // Half a minute without an answer is a test of its own.
    if (code === '21') continue
    const msisdn = `+22370${code}0001`
    for (const client of gsma) {
      await client.collect(msisdn, { amount: '900001' }).catch(lost)
      // A payee that cannot be paid at this moment would delay the answer.
      if (code !== '09' && code !== '10') await client.disburse(msisdn, { amount: '900001' }).catch(lost)
    }
    await b.session(msisdn, { amount: '900001' }).catch(lost)
    await b.payout(msisdn, undefined, { receive_amount: '30000001' }).catch(lost)
    expect((await bench.control('GET', '/invariants')).body).toMatchObject({ ok: true })
  }
  await bench.advance(30 * 60 * minute)
  const { body } = await bench.control('GET', '/invariants')
  expect(body).toMatchObject({ ok: true, problems: [] })
  const accounts = (await bench.control('GET', '/accounts?msisdn=%2B22370000001')).body
  for (const name of ['OperatorA', 'OperatorB', 'OperatorC', 'OperatorD']) {
    const own = accounts[name] as { [account: string]: string } & { wallets: { count: number; sum: string } }
    const { wallets, 'wallet:+22370000001': wallet, ...rest } = own
    const sum = Object.values(rest).reduce((total, balance) => total + BigInt(balance), BigInt(wallets.sum))
    expect(sum).toBe(0n)
    expect(BigInt(wallet ?? -1)).toBeGreaterThanOrEqual(0n)
  }
})

test('the table of test numbers is complete, and marks the numbers that are still to come', () => {
  const codes = (since: string) => scenarios.filter((row) => row.since === since).map((row) => row.code)
  expect(codes('now').join(' ')).toBe(
    '00 01 02 03 04 05 06 07 09 10 11 12 20 21 22 23 24 25 26 27 30 31 32 33 34 35 40 41 51',
  )
  expect(codes('later').join(' ')).toBe('08')
})

test('calls show which were open at the same moment, also where the caller gave up', async () => {
  await using bench = await openBench()
  const a = await gsmaClient(bench.url, 'a')
  const places = async () => {
    const { body } = await bench.control('GET', '/calls?op=health')
    return (body as unknown as OperatorCall[]).map(({ arrived, ended }) => [arrived, ended])
  }
  await bench.control('POST', '/outage', { operator: 'OperatorA', mode: 'hang' })
  const caller = new AbortController()
  const hung = fetch(`${bench.url}/op-a/v1.2/mm/heartbeat`, { signal: caller.signal })
  await eventually(async () => expect(await places()).toHaveLength(1))
  const first = Number((await places())[0]?.[0])
  await bench.control('POST', '/outage', { operator: 'OperatorA', mode: 'none' })
  await a.get('/heartbeat')
  expect(await places()).toEqual([
    [first, null],
    [first + 1, first + 2],
  ])
  caller.abort()
  await expect(hung).rejects.toThrow('aborted')
  await eventually(async () => expect((await places())[0]).toEqual([first, first + 3]))
})
