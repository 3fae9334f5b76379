import { createHash, randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { eventuallyGives } from '../kit/eventually.ts'
import type { EffectName } from '../../src/simulator/effects.ts'
import {
  addFault as fault,
  type SimulatorAnswer,
  type SimulatorBench,
  checkoutClient,
  expectHanging,
  gsmaClient,
  hour,
  minute,
  openBench,
  openReceiver,
  second,
  word,
} from '../kit/simulator.ts'

const payer = '+22370000001'

interface Execution {
  client_reference: string
  kind: string
  count: number
  amount: string
  reversed: string
}

async function executions(bench: SimulatorBench, reference = 'REF-1'): Promise<Execution[]> {
  const { body } = await bench.control('GET', `/invariants?clientRef=${reference}`)
  expect(body).toMatchObject({ ok: true })
  return body['executions'] as Execution[]
}

/** How often money moved for the reference that the clients use by themselves. */
const moved = async (bench: SimulatorBench) =>
  (await executions(bench)).reduce((sum, { count }) => sum + count, 0)
const statusOf = (answer: Promise<SimulatorAnswer>) => answer.then(({ status }) => status)
const d = (bench: SimulatorBench) => gsmaClient(bench.url, 'd')
const a = (bench: SimulatorBench) => gsmaClient(bench.url, 'a')

async function statement(bench: SimulatorBench) {
  const client = await d(bench)
  const { headers, body } = await client.get('/accounts/statemententries')
  const rows = body as unknown as Record<string, unknown>[]
  return { promised: Number(headers.get('x-records-available-count')), lines: rows.slice(1) }
}

/** Two payments out of 5,000 each, then what the statement says of them under a fault of the first. */
async function misstated(bench: SimulatorBench, effect: EffectName) {
  const client = await d(bench)
  await client.disburse(payer, { reference: 'ONE' })
  await client.disburse(payer, { reference: 'TWO' })
  await fault(bench, effect, { match: { clientRef: 'ONE' } })
  const first = await statement(bench)
  expect(await statement(bench)).toEqual(first)
  return { ...first, names: first.lines.map((line) => line['requestingOrganisationTransactionReference']) }
}

/** A collection at OperatorA that calls back, decided at once. */
async function called(bench: SimulatorBench, effect: EffectName, body: object = {}) {
  const receiver = await openReceiver()
  await fault(bench, effect, { match: { operator: 'OperatorA' }, ...body })
  const client = await a(bench)
  await client.collect(payer, { callbackUrl: `${receiver.url}/cb` })
  return receiver
}

/** Each effect as a client sees it on the socket. */
const seen: Record<EffectName, (bench: SimulatorBench) => Promise<void>> = {
  async close_before(bench) {
    const client = await d(bench)
    await fault(bench, 'close_before', { match: { op: 'disburse' }, times: 1 })
    const correlationId = randomUUID()
    await expect(client.disburse(payer, { correlationId })).rejects.toThrow('fetch failed')
    expect(await moved(bench)).toBe(0)
    expect((await client.get(`/responses/${correlationId}`)).status).toBe(404)
    expect((await client.disburse(payer, { correlationId })).status).toBe(201)
    expect(await moved(bench)).toBe(1)
  },
  async hang(bench) {
    const client = await d(bench)
    await fault(bench, 'hang', { match: { op: 'health' } })
    await expectHanging(bench, '/op-d/v1.1/mm/heartbeat', client.headers)
  },
  async status(bench) {
    const client = await d(bench)
    await fault(bench, 'status', { match: { operator: 'OperatorD', op: 'disburse' }, times: 1 })
    const before = await client.disburse(payer)
    expect([before.status, before.body['errorCategory'], await moved(bench)]).toEqual([
      503,
      'serviceUnavailable',
      0,
    ])
    await fault(bench, 'status', { params: { status: 500, when: 'after' }, match: { op: 'disburse' } })
    expect((await client.disburse(payer)).body['errorCategory']).toBe('internal')
    expect(await moved(bench)).toBe(1)
    const b = checkoutClient(bench.url)
    expect((await b.payout(payer)).body['code']).toBe('fault')
  },
  async html(bench) {
    await fault(bench, 'html', { match: { op: 'disburse' } })
    const answer = await (await d(bench)).disburse(payer)
    expect([answer.status, answer.headers.get('content-type')]).toEqual([502, 'text/html'])
    expect(await moved(bench)).toBe(0)
  },
  async rate_limit(bench) {
    await fault(bench, 'rate_limit', { params: { retry_after_s: 7 }, match: { op: 'disburse' } })
    const [answer, other] = [
      await (await d(bench)).disburse(payer),
      await checkoutClient(bench.url).payout(payer),
    ]
    for (const { status, headers } of [answer, other])
      expect([status, headers.get('retry-after')]).toEqual([429, '7'])
    expect(answer.body['errorCode']).toBe('rateLimitError')
    expect(await moved(bench)).toBe(0)
  },
  async no_float(bench) {
    await fault(bench, 'no_float', { times: 1 })
    const client = await d(bench)
    const { status, body } = await client.disburse(payer)
    expect([status, body['errorCode']]).toEqual([400, 'insufficientFunds'])
    const b = checkoutClient(bench.url)
    expect((await b.payout(payer)).body['code']).toBe('insufficient-funds')
    expect(await moved(bench)).toBe(0)
  },
  async token_expired(bench) {
    const client = await d(bench)
    await fault(bench, 'token_expired', { match: { op: 'query' }, times: 1 })
    const { body } = await client.disburse(payer)
    const ask = () => client.get(`/transactions/${word(body, 'transactionReference')}`)
    const refused = await ask()
    expect([refused.status, refused.body['errorCode']]).toEqual([401, 'clientAuthorisationError'])
    expect((await ask()).status).toBe(200)
  },
  async poll_limit(bench) {
    const client = await d(bench)
    const { body } = await client.disburse(payer)
    await fault(bench, 'poll_limit', { params: { polls: 2 } })
    const ask = () => statusOf(client.get(`/transactions/${word(body, 'transactionReference')}`))
    expect([await ask(), await ask(), await ask()]).toEqual([200, 200, 429])
  },
  async late_execution(bench) {
    const client = await d(bench)
    await fault(bench, 'late_execution', { params: { ms: minute }, times: 1 })
    const correlationId = randomUUID()
    await expect(client.disburse(payer, { correlationId })).rejects.toThrow('fetch failed')
    expect((await client.get(`/responses/${correlationId}`)).status).toBe(404)
    await bench.advance(minute)
    await eventuallyGives(
      () => statusOf(client.get(`/responses/${correlationId}`)),
      (status) => status === 200,
    )
    const again = await client.disburse(payer, { correlationId })
    expect(again.body['errorCode']).toBe('duplicateRequest')
    expect(await moved(bench)).toBe(1)
  },
  async no_dedupe(bench) {
    await fault(bench, 'no_dedupe')
    const client = await d(bench)
    const correlationId = randomUUID()
    for (let sent = 0; sent < 2; sent++)
      expect((await client.disburse(payer, { correlationId })).status).toBe(201)
    const b = checkoutClient(bench.url)
    for (let sent = 0; sent < 3; sent++) expect((await b.payout(payer, 'ONE-KEY')).status).toBe(200)
    const { body } = await bench.control('GET', '/invariants')
    expect(body['repeated']).toMatchObject([
      { operator: 'OperatorB', client_reference: 'OUT-B', count: 3, correlation_ids: ['ONE-KEY'] },
      { operator: 'OperatorD', client_reference: 'REF-1', count: 2, amount: '10000' },
    ])
  },
  async close_after(bench) {
    const client = await d(bench)
    await fault(bench, 'close_after', { match: { op: 'disburse' } })
    const correlationId = randomUUID()
    await expect(client.disburse(payer, { correlationId })).rejects.toThrow('fetch failed')
    expect(await moved(bench)).toBe(1)
    expect((await client.get(`/responses/${correlationId}`)).status).toBe(200)
  },
  async delay(bench) {
    const client = await d(bench)
    await fault(bench, 'delay', { match: { op: 'disburse' }, params: { ms: hour } })
    const answer = client.disburse(payer)
    await eventuallyGives(
      () => moved(bench),
      (count) => count === 1,
    )
    await bench.advance(hour)
    expect((await answer).status).toBe(201)
  },
  async garbage(bench) {
    await fault(bench, 'garbage', { match: { op: 'disburse' } })
    await expect((await d(bench)).disburse(payer)).rejects.toThrow('JSON')
    expect(await moved(bench)).toBe(1)
  },
  async truncate(bench) {
    await fault(bench, 'truncate', { match: { op: 'disburse' } })
    await expect((await d(bench)).disburse(payer)).rejects.toThrow('terminated')
    expect(await moved(bench)).toBe(1)
  },
  async unmapped_status(bench) {
    await fault(bench, 'unmapped_status')
    expect((await (await d(bench)).disburse(payer)).body['transactionStatus']).toBe('held_for_review')
    const { body } = await checkoutClient(bench.url).session(payer)
    expect([body['checkout_status'], body['payment_status']]).toEqual(['held_for_review', 'held_for_review'])
  },
  async other_reference(bench) {
    await fault(bench, 'other_reference')
    const { body } = await (await d(bench)).disburse(payer)
    expect(word(body, 'requestingOrganisationTransactionReference')).not.toBe('REF-1')
    const session = await checkoutClient(bench.url).session(payer)
    expect(word(session.body, 'client_reference')).not.toBe('REF-B')
    expect(await moved(bench)).toBe(1)
  },
  async other_payee(bench) {
    await fault(bench, 'other_payee')
    const { body } = await (await d(bench)).disburse(payer)
    expect(body['creditParty']).toEqual([{ key: 'msisdn', value: '+22370000099' }])
    expect((await checkoutClient(bench.url).payout(payer)).body['mobile']).toBe('+22370000099')
  },
  async link_foreign_origin(bench) {
    const client = await d(bench)
    const correlationId = randomUUID()
    await client.disburse(payer, { correlationId })
    await fault(bench, 'link_foreign_origin')
    const { body } = await client.get(`/responses/${correlationId}`)
    expect(new URL(word(body, 'link')).origin).toBe('http://elsewhere.invalid')
  },
  async wrong_amount(bench) {
    await fault(bench, 'wrong_amount', { params: { less: 30 } })
    expect((await (await d(bench)).disburse(payer)).body['amount']).toBe('4970')
    expect(await executions(bench)).toMatchObject([{ count: 1, amount: '4970' }])
  },
  async excess_amount(bench) {
    await fault(bench, 'excess_amount', { params: { more: 9_000_000_000_000_000 } })
    expect((await (await d(bench)).disburse(payer)).body['amount']).toBe('9000000000005000')
    expect(await executions(bench)).toMatchObject([{ count: 1, amount: '9000000000005000' }])
  },
  async reversal(bench) {
    await using receiver = await openReceiver()
    await fault(bench, 'reversal', { params: { ms: minute } })
    const client = await a(bench)
    await client.collect(payer, { callbackUrl: `${receiver.url}/cb` })
    expect((await receiver.call(1)).body['transactionStatus']).toBe('completed')
    await bench.advance(minute)
    expect((await receiver.call(2)).body['transactionStatus']).toBe('reversed')
    expect(await executions(bench)).toMatchObject([{ count: 1, amount: '5000', reversed: '5000' }])
  },
  async cb_drop(bench) {
    await using receiver = await called(bench, 'cb_drop')
    await bench.advance(hour)
    expect(receiver.received).toEqual([])
    expect(await moved(bench)).toBe(1)
  },
  async cb_duplicate(bench) {
    await using receiver = await called(bench, 'cb_duplicate', { params: { copies: 4 } })
    await receiver.call(4)
    expect(new Set(receiver.received.map(({ raw }) => raw)).size).toBe(1)
  },
  async cb_delay(bench) {
    await using receiver = await called(bench, 'cb_delay', { params: { ms: hour } })
    await bench.advance(hour - second)
    expect(receiver.received).toEqual([])
    await bench.advance(2 * second)
    expect((await receiver.call(1)).body['transactionStatus']).toBe('completed')
  },
  async cb_reorder(bench) {
    await using receiver = await called(bench, 'cb_reorder', { params: { ms: minute } })
    await receiver.call(1)
    await bench.advance(minute)
    await receiver.call(2)
    const words = receiver.received.map(({ body }) => body['transactionStatus'])
    expect(words).toEqual(['completed', 'pending'])
  },
  async cb_bad_signature(bench) {
    await using receiver = await called(bench, 'cb_bad_signature')
    await using right = await openReceiver()
    const own = await receiver.call(1)
    await bench.control('DELETE', '/faults')
    await (await a(bench)).collect(payer, { callbackUrl: `${right.url}/cb` })
    const [wrong, whole] = [own, await right.call(1)].map(({ headers }) => headers['x-content-hash'])
    expect(wrong).toMatch(/^[0-9a-f]{64}$/)
    expect(whole).toMatch(/^[0-9a-f]{64}$/)
    expect(createHash('sha256').update(own.raw).digest('hex')).not.toBe(wrong)
  },
  async cb_before_response(bench) {
    await using receiver = await openReceiver()
    await fault(bench, 'cb_before_response')
    const client = await a(bench)
    const order: string[] = []
    const callback = receiver.call(1).then(() => order.push('callback'))
    await client.collect(payer, { callbackUrl: `${receiver.url}/cb` })
    order.push('answer')
    await callback
    expect(order).toEqual(['callback', 'answer'])
  },
  async cb_contradict(bench) {
    await using receiver = await called(bench, 'cb_contradict')
    expect((await receiver.call(1)).body['errorCode']).toBe('requestDeclined')
    expect(await moved(bench)).toBe(1)
  },
  async stmt_drop(bench) {
    expect((await misstated(bench, 'stmt_drop')).names).toEqual(['TWO'])
  },
  async stmt_extra(bench) {
    expect((await misstated(bench, 'stmt_extra')).names).toEqual(['ONE', '', 'TWO'])
  },
  async stmt_amount(bench) {
    expect((await misstated(bench, 'stmt_amount')).lines.map(({ amount }) => amount)).toEqual([
      '4900',
      '5000',
    ])
  },
  async stmt_fee(bench) {
    const { lines } = await misstated(bench, 'stmt_fee')
    expect(lines.map(({ fees }) => (fees as [{ feeAmount: string }])[0].feeAmount)).toEqual(['1', '0'])
  },
  async stmt_next_day(bench) {
    const { lines } = await misstated(bench, 'stmt_next_day')
    const [one, two] = lines.map(({ creationDate }) => Date.parse(String(creationDate)))
    expect(Math.round(((one ?? 0) - (two ?? 0)) / hour)).toBe(24)
  },
  async stmt_duplicate(bench) {
    expect((await misstated(bench, 'stmt_duplicate')).names).toEqual(['ONE', 'ONE', 'TWO'])
  },
  async stmt_truncate(bench) {
    const { names, promised } = await misstated(bench, 'stmt_truncate')
    expect([names, promised]).toEqual([[], 3])
  },
}

test.each(Object.entries(seen))('%s is seen on the socket', async (_effect, see) => {
  await using bench = await openBench()
  await see(bench)
  expect((await bench.control('GET', '/invariants')).body).toMatchObject({ ok: true, problems: [] })
})

test('a request that arrives late at an operator without deduplication is carried out again', async () => {
  await using bench = await openBench()
  const client = await d(bench)
  await fault(bench, 'no_dedupe')
  await fault(bench, 'late_execution', { params: { ms: minute }, times: 1 })
  const correlationId = randomUUID()
  await expect(client.disburse(payer, { correlationId })).rejects.toThrow('fetch failed')
  expect((await client.disburse(payer, { correlationId })).status).toBe(201)
  await bench.advance(minute)
  await eventuallyGives(
    () => moved(bench),
    (count) => count === 2,
  )
})

test('the webhook operator forges, contradicts and repeats as well', async () => {
  await using bench = await openBench()
  await using receiver = await openReceiver()
  await bench.control('PUT', '/webhook', { url: `${receiver.url}/webhook`, secret: 'shared' })
  for (const effect of ['cb_contradict', 'cb_reorder', 'cb_duplicate', 'reversal'] as const)
    await fault(bench, effect)
  await checkoutClient(bench.url).session(payer)
  await bench.advance(minute)
  await receiver.call(4)
  const types = new Set(receiver.received.map(({ body }) => body['type']))
  expect(types).toEqual(new Set(['checkout.session.payment_failed']))
  await bench.control('DELETE', '/faults')
  const { body } = await checkoutClient(bench.url).session(payer)
  await eventuallyGives(
    () => bench.control('POST', `/transactions/${word(body, 'id')}/reverse`),
    ({ status }) => status === 200,
  )
  await eventuallyGives(
    async () => receiver.received.map((call) => String(call.body['type'])),
    (all) => all.includes('checkout.session.refunded'),
  )
})
