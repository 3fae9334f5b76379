import { createHash, randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { eventuallyGives } from '../kit/eventually.ts'
import {
  gsmaClient,
  hour,
  minute,
  openBench,
  openReceiver,
  paymentBody,
  second,
  send,
  word,
} from '../kit/simulator.ts'

const ordinary = '+22376123456'

test('a client without the right secret, token or key is refused', async () => {
  await using bench = await openBench()
  const wrong = { authorization: `Basic ${Buffer.from('sandbox-a:wrong').toString('base64')}` }
  const form = 'grant_type=client_credentials'
  const grant = await send(bench.url, 'POST', '/op-a/oauth/token', wrong, form)
  expect([grant.status, grant.body]).toEqual([401, { error: 'invalid_client' }])
  const a = await gsmaClient(bench.url, 'a')
  const c = await gsmaClient(bench.url, 'c')
  for (const headers of [{ authorization: 'Bearer 9999999999.x' }, { 'x-api-key': 'wrong' }, c.headers]) {
    const answer = await a.call('GET', '/accounts/balance', headers)
    expect(answer.status).toBe(401)
    expect(answer.body).toMatchObject({
      errorCategory: 'authorisation',
      errorCode: 'clientAuthorisationError',
    })
  }
  expect((await a.get('/accounts/balance')).body).toMatchObject({
    currentBalance: '50000000',
    currency: 'XOF',
  })
})

test('OperatorA accepts a collection, settles after 3 s and calls back with the transaction', async () => {
  await using bench = await openBench()
  await using receiver = await openReceiver()
  const a = await gsmaClient(bench.url, 'a')
  const correlationId = randomUUID()
  const accepted = await a.collect(ordinary, { correlationId, callbackUrl: `${receiver.url}/hook/1` })
  expect(accepted.status).toBe(202)
  expect(accepted.body).toMatchObject({ status: 'pending', notificationMethod: 'callback', pollLimit: 100 })
  await bench.advance(2 * second)
  const statePath = `/requeststates/${word(accepted.body, 'serverCorrelationId')}`
  expect((await a.get(statePath)).body['status']).toBe('pending')
  await bench.advance(2 * second)
  const call = await receiver.call(1)
  expect([call.method, call.path]).toEqual(['PUT', '/hook/1'])
  expect(call.headers['x-correlationid']).toBe(correlationId)
  expect(call.headers['x-content-hash']).toBe(createHash('sha256').update(call.raw).digest('hex'))
  expect(Date.parse(String(call.headers['x-date']))).toBeGreaterThan(Date.now())
  expect(call.body).toMatchObject({
    transactionStatus: 'completed',
    type: 'merchantpay',
    amount: '5000',
    currency: 'XOF',
    requestingOrganisationTransactionReference: 'REF-1',
    debitParty: [{ key: 'msisdn', value: ordinary }],
  })
  const state = await a.get(statePath)
  expect(state.body).toMatchObject({
    status: 'completed',
    objectReference: call.body['transactionReference'],
  })
  expect((await a.get(`/transactions/${word(call.body, 'transactionReference')}`)).body).toEqual(call.body)
  expect((await a.get('/accounts/balance')).body['currentBalance']).toBe('50005000')
})

test('a missed answer is found by correlation id, an unknown one is 404, a repeat refused', async () => {
  await using bench = await openBench()
  const a = await gsmaClient(bench.url, 'a')
  const correlationId = randomUUID()
  const before = await a.get(`/responses/${correlationId}`)
  expect(before.status).toBe(404)
  expect(before.body).toMatchObject({ errorCategory: 'identification', errorCode: 'identifierError' })
  await a.collect(ordinary, { correlationId })
  const repeat = await a.collect(ordinary, { correlationId })
  expect([repeat.status, repeat.body['errorCode']]).toEqual([400, 'duplicateRequest'])
  const link = String((await a.get(`/responses/${correlationId}`)).body['link'])
  expect(link.startsWith(`${bench.url}/op-a/v1.2/mm/transactions/`)).toBe(true)
  const found = await send(link, 'GET', '', a.headers)
  expect(found.body).toMatchObject({ transactionStatus: 'pending', amount: '5000' })
  await bench.advance(3 * second)
  expect((await a.get('/accounts/balance')).body['currentBalance']).toBe('50005000')
})

test('OperatorC is polled and never calls back', async () => {
  await using bench = await openBench()
  await using receiver = await openReceiver()
  const a = await gsmaClient(bench.url, 'a')
  const c = await gsmaClient(bench.url, 'c')
  const accepted = await c.collect('+22370000001', { callbackUrl: `${receiver.url}/c` })
  expect(accepted.body['notificationMethod']).toBe('polling')
  await a.collect('+22370000002', { callbackUrl: `${receiver.url}/a` })
  await bench.advance(minute)
  expect((await receiver.call(1)).path).toBe('/a')
  const state = await c.get(`/requeststates/${word(accepted.body, 'serverCorrelationId')}`)
  expect(state.body['status']).toBe('completed')
  await bench.advance(24 * hour)
  expect(receiver.received).toHaveLength(1)
})

test('OperatorD pays out in its answer, holds the line for a slow one, not for a very slow one', async () => {
  await using bench = await openBench()
  await using receiver = await openReceiver()
  const d = await gsmaClient(bench.url, 'd')
  const at = (path: string) => ({ callbackUrl: receiver.url + path })
  const done = await d.disburse(ordinary, at('/done'))
  expect(done.status).toBe(201)
  expect(done.body).toMatchObject({ transactionStatus: 'completed', type: 'disbursement', amount: '5000' })
  const held = d.disburse('+22370000801', at('/held'))
  await eventuallyGives(
    () => bench.control('GET', '/invariants'),
    ({ body }) => body['pending'] === 1,
  )
  await bench.advance(8 * second)
  expect((await held).status).toBe(201)
  const slow = await d.disburse('+22370006001', at('/slow'))
  expect([slow.status, slow.body['status']]).toEqual([202, 'pending'])
  await bench.advance(minute)
  const call = await receiver.call(1)
  expect([call.path, call.body['transactionStatus']]).toEqual(['/slow', 'completed'])
  expect((await d.disburse('+22370030001')).body).toMatchObject({ errorCode: 'identifierError' })
  expect((await d.disburse('+22370040001')).body).toMatchObject({ errorCode: 'maxBalanceExceeded' })
  expect((await d.get('/accounts/balance')).body['currentBalance']).toBe('49985000')
})

const failures = [
  ['01 declines', '+22370010501', 5 * second, 'authorisation', 'requestDeclined'],
  ['02 has no money', '+22370020001', 0, 'businessRule', 'insufficientFunds'],
  ['04 is at its limit', '+22370040001', 0, 'businessRule', 'dailyValueLimitExceeded'],
  ['06 fails the PIN', '+22370060201', 2 * second, 'authorisation', 'servicingPartyAuthorisationError'],
  ['07 is busy', '+22370070001', 0, 'businessRule', 'genericError'],
  ['10 lets the prompt expire', '+22370100001', 5 * minute, 'businessRule', 'genericError'],
  ['10 lets it expire after PP minutes', '+22370100201', 2 * minute, 'businessRule', 'genericError'],
] as const

test.each(failures)(
  'number %s: accepted, failed after its time',
  async (_name, msisdn, ms, category, code) => {
    await using bench = await openBench()
    await using receiver = await openReceiver()
    const a = await gsmaClient(bench.url, 'a')
    const correlationId = randomUUID()
    const accepted = await a.collect(msisdn, { correlationId, callbackUrl: `${receiver.url}/x` })
    expect(accepted.status).toBe(202)
    const statePath = `/requeststates/${word(accepted.body, 'serverCorrelationId')}`
    if (ms > 0) await bench.advance(ms - second)
    const early = ms > 0 ? (await a.get(statePath)).body['status'] : 'pending'
    expect(early).toBe('pending')
    await bench.advance(2 * second)
    const call = await receiver.call(1)
    expect(call.body).toMatchObject({ errorCategory: category, errorCode: code })
    const state = await a.get(statePath)
    expect(state.body).toMatchObject({ status: 'failed', error: call.body })
    const link = String((await a.get(`/responses/${correlationId}`)).body['link'])
    const record = await send(link, 'GET', '', a.headers)
    expect([record.status, record.body]).toEqual([200, call.body])
    expect((await a.get('/accounts/balance')).body['currentBalance']).toBe('50000000')
  },
)

test('busy telephones and expired prompts say so in the error parameters', async () => {
  await using bench = await openBench()
  const d = await gsmaClient(bench.url, 'd')
  for (const [msisdn, value] of [
    ['+22370070001', 'subscriberBusy'],
    ['+22370100101', 'promptExpired'],
  ] as const) {
    const accepted = await d.collect(msisdn)
    await bench.advance(minute)
    const state = await d.get(`/requeststates/${word(accepted.body, 'serverCorrelationId')}`)
    expect(state.body['errorReference']).toMatchObject({ errorParameters: [{ key: 'reason', value }] })
  }
})

test.each([
  ['03', '+22370030001', 404, 'identification', 'identifierError'],
  ['05', '+22370050001', 400, 'businessRule', 'incorrectState'],
] as const)(
  'number %s is refused in the first answer, on record',
  async (_code, msisdn, status, category, code) => {
    await using bench = await openBench()
    const a = await gsmaClient(bench.url, 'a')
    const correlationId = randomUUID()
    const refused = await a.collect(msisdn, { correlationId })
    expect(refused.status).toBe(status)
    expect(refused.body).toMatchObject({ errorCategory: category, errorCode: code })
    expect((await a.collect(msisdn, { correlationId })).body['errorCode']).toBe('duplicateRequest')
    expect(String((await a.get(`/responses/${correlationId}`)).body['link'])).toContain('/errors/')
  },
)

test('numbers 09, 11 and 12 stay pending; 12 confirms after its hours, 09 when a person does', async () => {
  await using bench = await openBench()
  const c = await gsmaClient(bench.url, 'c')
  const ids: string[] = []
  for (const msisdn of ['+22370090001', '+22370110001', '+22370120001', '+22370120201']) {
    const accepted = await c.collect(msisdn, { reference: `R${msisdn}` })
    expect(accepted.body).not.toHaveProperty('expiryTime')
    ids.push(String(accepted.body['serverCorrelationId']))
  }
  const states = async () =>
    Promise.all(ids.map(async (id) => (await c.get(`/requeststates/${id}`)).body['status']))
  await bench.advance(3 * hour)
  expect(await states()).toEqual(['pending', 'pending', 'pending', 'completed'])
  await bench.advance(22 * hour)
  expect(await states()).toEqual(['pending', 'pending', 'completed', 'completed'])
  const [asked] = (await bench.control('GET', `/operations?clientRef=R%2B22370090001`)).body as unknown as [
    { id: string },
  ]
  expect((await bench.control('POST', `/transactions/${asked.id}/confirm`)).status).toBe(200)
  expect((await bench.control('POST', `/transactions/${asked.id}/decline`)).status).toBe(409)
  expect(await states()).toEqual(['completed', 'pending', 'completed', 'completed'])
})

test('a number that is announced for later behaves like an ordinary number', async () => {
  await using bench = await openBench()
  const c = await gsmaClient(bench.url, 'c')
  const accepted = await c.collect('+22370080001')
  await bench.advance(3 * second)
  const state = await c.get(`/requeststates/${word(accepted.body, 'serverCorrelationId')}`)
  expect(state.body['status']).toBe('completed')
})

test('OperatorA repeats a callback that was not taken after 10, 60 and 600 s, then gives up', async () => {
  await using bench = await openBench()
  await using receiver = await openReceiver()
  const a = await gsmaClient(bench.url, 'a')
  receiver.answers.push(500, 503, 404, 500, 500)
  await a.collect('+22370000001', { callbackUrl: `${receiver.url}/again` })
  await bench.advance(second)
  for (const [count, ms] of [
    [1, 10 * second],
    [2, 60 * second],
    [3, 600 * second],
  ] as const) {
    await receiver.call(count)
    await bench.advance(ms - 2 * second)
    expect(receiver.received).toHaveLength(count)
    await bench.advance(2 * second)
  }
  await receiver.call(4)
  await bench.advance(24 * hour)
  expect(receiver.received).toHaveLength(4)
  expect(new Set(receiver.received.map((call) => call.raw)).size).toBe(1)
  expect((await bench.control('GET', '/invariants')).body['notes']).toBe(0)
})

test('OperatorD calls back once, for any answer', async () => {
  await using bench = await openBench()
  await using receiver = await openReceiver()
  const d = await gsmaClient(bench.url, 'd')
  receiver.answers.push(500)
  await d.collect('+22370000001', { callbackUrl: `${receiver.url}/once` })
  await bench.advance(second)
  await receiver.call(1)
  await bench.advance(24 * hour)
  expect(receiver.received).toHaveLength(1)
})

test('a settled payment is reversed in part and in whole, never beyond', async () => {
  await using bench = await openBench()
  const d = await gsmaClient(bench.url, 'd')
  await d.collect('+22370000001')
  await bench.advance(second)
  const [paid] = (await d.get('/accounts/transactions')).body as unknown as [{ transactionReference: string }]
  const reference = paid.transactionReference
  const part = await d.reverse(reference, { amount: '2000' })
  expect(part.status).toBe(201)
  expect(part.body).toMatchObject({
    type: 'reversal',
    amount: '2000',
    originalTransactionReference: reference,
  })
  expect((await d.get(`/transactions/${reference}`)).body['transactionStatus']).toBe('completed')
  expect((await d.reverse(reference)).body['errorCode']).toBe('incorrectState')
  expect((await d.reverse(reference, { amount: '3000' })).status).toBe(201)
  expect((await d.get(`/transactions/${reference}`)).body['transactionStatus']).toBe('reversed')
  expect((await d.reverse(reference, { amount: '1' })).body['errorCode']).toBe('incorrectState')
  expect((await d.get('/accounts/balance')).body['currentBalance']).toBe('50000000')
})

test('two reversals that wait at once give the money back once', async () => {
  await using bench = await openBench()
  const c = await gsmaClient(bench.url, 'c')
  await c.collect('+22370000001')
  await bench.advance(second)
  const [paid] = (await c.get('/accounts/transactions')).body as unknown as [{ transactionReference: string }]
  const answers = [await c.reverse(paid.transactionReference), await c.reverse(paid.transactionReference)]
  expect(answers.map((answer) => answer.status)).toEqual([202, 202])
  await bench.advance(2 * second)
  const states = answers.map(
    async ({ body }) => (await c.get(`/requeststates/${word(body, 'serverCorrelationId')}`)).body,
  )
  expect((await Promise.all(states)).map((state) => state['status'])).toEqual(['completed', 'failed'])
  expect((await c.get('/accounts/balance')).body['currentBalance']).toBe('50000000')
})

test('a prompt that no customer answered is withdrawn once, in version 1.2 only', async () => {
  await using bench = await openBench()
  const patch = [{ op: 'replace', path: '/transactionStatus', value: 'cancelled' }]
  const a = await gsmaClient(bench.url, 'a')
  await a.collect('+22370090001', { reference: 'WAIT' })
  const [waiting] = (await bench.control('GET', '/operations?clientRef=WAIT')).body as unknown as [
    { id: string },
  ]
  const path = `/transactions/${waiting.id}`
  expect((await a.call('PATCH', path, {}, JSON.stringify([{ op: 'remove', path: '/x' }]))).status).toBe(400)
  expect((await a.call('PATCH', path, {}, JSON.stringify(patch))).status).toBe(204)
  expect((await a.get(path)).body['transactionStatus']).toBe('failed')
  expect((await a.call('PATCH', path, {}, JSON.stringify(patch))).body['errorCode']).toBe('incorrectState')
  const d = await gsmaClient(bench.url, 'd')
  await d.collect('+22370090001', { reference: 'WAIT-D' })
  const [other] = (await bench.control('GET', '/operations?clientRef=WAIT-D')).body as unknown as [
    { id: string },
  ]
  const refused = await d.call('PATCH', `/transactions/${other.id}`, {}, JSON.stringify(patch))
  expect(refused.body['errorCode']).toBe('transactionTypeError')
})

test('a request that breaks the schema is refused and leaves its correlation id free', async () => {
  await using bench = await openBench()
  const a = await gsmaClient(bench.url, 'a')
  const correlationId = randomUUID()
  const good = paymentBody('merchantpay', ordinary)
  const path = '/transactions/type/merchantpay'
  const cases: [Record<string, string>, object | string, string][] = [
    [{}, good, 'mandatoryValueNotSupplied'],
    [{ 'x-correlationid': 'one' }, good, 'formatError'],
    [{ 'x-correlationid': correlationId, 'x-content-hash': '00' }, good, 'formatError'],
    [{ 'x-correlationid': correlationId }, '{', 'formatError'],
    [{ 'x-correlationid': correlationId }, '[]', 'formatError'],
    [{ 'x-correlationid': correlationId }, { ...good, amount: '10.50' }, 'formatError'],
    [{ 'x-correlationid': correlationId }, { ...good, amount: 500 }, 'formatError'],
    [{ 'x-correlationid': correlationId }, { ...good, amount: '-5' }, 'negativeValue'],
    [{ 'x-correlationid': correlationId }, { ...good, currency: 'EUR' }, 'currencyNotSupported'],
    [{ 'x-correlationid': correlationId }, { ...good, debitParty: [] }, 'mandatoryValueNotSupplied'],
    [{ 'x-correlationid': correlationId }, { ...good, descriptionText: 'x'.repeat(161) }, 'lengthError'],
    [
      { 'x-correlationid': correlationId },
      { ...good, creditParty: [{ key: 'accountid', value: 'OTHER' }] },
      'identifierError',
    ],
    [{ 'x-correlationid': correlationId, 'x-callback-url': 'ftp://x' }, good, 'formatError'],
  ]
  for (const [headers, body, code] of cases) {
    const answer = await a.call('POST', path, headers, body)
    expect([answer.status, answer.body['errorCode']]).toEqual([code === 'identifierError' ? 404 : 400, code])
  }
  expect((await a.call('POST', path, { 'x-correlationid': correlationId }, 'x'.repeat(70_000))).status).toBe(
    413,
  )
  expect((await a.collect(ordinary, { correlationId })).status).toBe(202)
  expect((await a.call('DELETE', path)).status).toBe(405)
})

test('holders are named, blocked ones unavailable, absent ones 404; only our account is ours', async () => {
  await using bench = await openBench()
  const a = await gsmaClient(bench.url, 'a')
  const name = await a.get(`/accounts/msisdn/${encodeURIComponent(ordinary)}/accountname`)
  expect(name.body['name']).toMatchObject({ fullName: expect.stringMatching(/^\S+ \S+$/) as string })
  expect((await a.get(`/accounts/msisdn/22376123456/accountname`)).body).toEqual(name.body)
  expect((await a.get('/accounts/msisdn/+22376123456/status')).body['accountStatus']).toBe('available')
  expect((await a.get('/accounts/msisdn/+22370050001/status')).body['accountStatus']).toBe('unavailable')
  expect((await a.get('/accounts/msisdn/+22370030001/accountname')).status).toBe(404)
  expect((await a.get('/accounts/accountid/POOL/balance')).status).toBe(200)
  expect((await a.get(`/accounts/msisdn/${ordinary}/balance`)).body['errorCategory']).toBe('authorisation')
  expect((await a.get('/heartbeat')).body).toEqual({ serviceStatus: 'available' })
})

test('the statement pages through every movement of the float with running balances', async () => {
  await using bench = await openBench()
  const c = await gsmaClient(bench.url, 'c')
  for (let count = 1; count <= 5; count++) await c.collect(`+2237000000${count}`, { amount: String(count) })
  await bench.advance(second)
  const first = await c.get('/accounts/accountid/POOL/statemententries?limit=4&offset=0')
  const rest = await c.get('/accounts/accountid/POOL/statemententries?limit=4&offset=4')
  expect(first.headers.get('x-records-available-count')).toBe('6')
  expect(rest.headers.get('x-records-returned-count')).toBe('2')
  const rows = [...(first.body as unknown as object[]), ...(rest.body as unknown as object[])] as Record<
    string,
    string
  >[]
  expect(rows.map((row) => row['amount'])).toEqual(['50000000', '1', '2', '3', '4', '5'])
  expect(rows.at(-1)).toMatchObject({ displayType: 'in', balance: '50000015', type: 'merchantpay' })
  const future = new Date(Date.now() + hour).toISOString()
  const later = await c.get(`/accounts/statemententries?fromDateTime=${future}`)
  expect(later.body).toEqual([])
  expect((await c.get('/accounts/statemententries?offset=7')).body['errorCode']).toBe('invalidOffset')
})
