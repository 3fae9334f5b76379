import { expect, onTestFinished, test } from 'vitest'
import type { GsmaSettings } from '../../src/config/operators.ts'
import { createGsmaDriver } from '../../src/operators/gsma-mm.ts'
import { sha256 } from '../../src/operators/http-client.ts'
import type { OperatorHandle } from '../../src/operators/operator.ts'
import {
  type FaultAct,
  call,
  deps,
  gsmaSettings,
  newHandle,
  reply,
  scriptedOperator,
} from '../kit/operators.ts'

function driverAt(
  url: string,
  letter: 'A' | 'C' | 'D' = 'A',
  more: Partial<GsmaSettings> = {},
  driverDeps = deps,
) {
  const driver = createGsmaDriver(gsmaSettings(url, letter, more), driverDeps)
  onTestFinished(() => driver.close())
  return driver
}

function asked(payer: string, handle: OperatorHandle = newHandle()) {
  return { handle, amount: 5_000n, payer, payee: payer, callbackUrl: 'http://127.0.0.1:9/x', attempt: 1 }
}

async function played(act: FaultAct, more: Partial<GsmaSettings> = {}) {
  const script = await scriptedOperator(act)
  return { script, driver: driverAt(script.url, 'A', more) }
}
const pending = reply(202, { status: 'pending', serverCorrelationId: 's1' })
const denied = reply(401, { errorCategory: 'authorisation', errorCode: 'clientAuthorisationError' })

test('a creation carries the headers and the body of the standard', async () => {
  const { script, driver } = await played(pending)
  const request = { ...asked('+22370000001'), description: 'x'.repeat(300) }
  await driver.collect(request, call({ traceparent: '00-a-b-01' }))
  const [seen] = script.seen
  expect(seen).toMatchObject({ method: 'POST', path: '/op-a/v1.2/mm/transactions/type/merchantpay' })
  expect(seen?.headers).toMatchObject({
    authorization: expect.stringMatching(/^Bearer token-/),
    'x-api-key': 'sandbox-key-a',
    'x-client-id': 'sandbox-a',
    'x-channel': 'API',
    'x-correlationid': request.handle.correlationId,
    'x-callback-url': 'http://127.0.0.1:9/x',
    'x-content-hash': sha256(seen?.body ?? ''),
    'x-date': expect.stringMatching(/Z$/),
    'content-type': 'application/json',
    traceparent: '00-a-b-01',
  })
  expect(JSON.parse(seen?.body ?? '')).toEqual({
    amount: '5000',
    currency: 'XOF',
    debitParty: [{ key: 'msisdn', value: '+22370000001' }],
    creditParty: [{ key: 'accountid', value: 'POOL' }],
    requestingOrganisationTransactionReference: request.handle.clientRef,
    requestDate: expect.any(String),
    descriptionText: 'x'.repeat(160),
  })
})

test('a refused token is renewed once, and the call sent once more', async () => {
  const { script, driver } = await played((response, seen) =>
    (script.seen.length === 1 ? denied : pending)(response, seen),
  )
  expect(await driver.collect(asked('+22370000001'), call())).toMatchObject({ kind: 'accepted' })
  expect(script.seen).toHaveLength(2)
  expect(script.seen[0]?.headers.authorization).not.toBe(script.seen[1]?.headers.authorization)
})

test('a second refusal of the token refuses the call', async () => {
  const { script, driver } = await played(denied)
  const refused = { kind: 'refused', refusal: { reason: 'CREDENTIALS_REJECTED' } }
  expect(await driver.collect(asked('+22370000001'), call())).toMatchObject(refused)
  expect(script.seen).toHaveLength(2)
})

test('a 401 that does not name the client is not sent again', async () => {
  const { script, driver } = await played(reply(401, '<html>Unauthorized</html>'))
  expect(await driver.collect(asked('+22370000001'), call())).toMatchObject({ kind: 'unknown' })
  expect(script.seen).toHaveLength(1)
})

test('many calls at once ask for one token', async () => {
  const { driver } = await played(pending)
  const ctx = call()
  await Promise.all(Array.from({ length: 20 }, () => driver.collect(asked('+22370000001'), ctx)))
  expect(ctx.exchanges.filter(({ operation }) => operation === 'token')).toMatchObject([
    { requestBody: '[secret]', responseBody: '[secret]' },
  ])
})

test('a rate limit in the body is as good as 429', async () => {
  const { driver } = await played(reply(400, { errorCategory: 'businessRule', errorCode: 'RateLimitError' }))
  expect(await driver.collect(asked('+22370000001'), call())).toMatchObject({
    kind: 'not_sent',
    cause: 'rate_limited',
  })
})

test('a state that is completed is read at once', async () => {
  const { script, driver } = await played((response, seen) =>
    seen.method === 'POST'
      ? reply(202, { status: 'Completed', serverCorrelationId: 's1', objectReference: 'MP/1' })(
          response,
          seen,
        )
      : reply(200, {
          TransactionReference: 'MP/1',
          TransactionStatus: 'Completed',
          Amount: 4_000,
          Currency: 'xof',
        })(response, seen),
  )
  const settled = { kind: 'settled', evidence: { amount: 4_000n, operatorRef: 'MP/1', source: 'query' } }
  expect(await driver.collect(asked('+22370000001'), call())).toMatchObject(settled)
  expect(script.seen[1]?.path).toBe('/op-a/v1.2/mm/transactions/MP%2F1')
})

test.each([
  [
    'the spelling of the schema',
    { errorCategory: 'businessRule', errorCode: 'insufficientFunds', errordescription: 'low' },
  ],
  [
    'the spelling of the text',
    { ErrorCategory: 'BusinessRule', ErrorCode: 'InsufficientFunds', errorDescription: 'low' },
  ],
])('errors are read in %s', async (_name, error) => {
  const { driver } = await played(reply(400, error))
  expect(await driver.collect(asked('+22370000001'), call())).toMatchObject({
    kind: 'refused',
    refusal: {
      reason: 'PAYER_INSUFFICIENT_FUNDS',
      code: 'errorCode' in error ? error.errorCode : error.ErrorCode,
      message: 'low',
    },
  })
})

test.each(['mandateProblem', 'constructor', 'quoteHasExpired'])(
  'the code %s is a refusal without a reason',
  async (errorCode) => {
    const { driver } = await played(reply(400, { errorCategory: 'businessRule', errorCode }))
    expect(await driver.collect(asked('+22370000001'), call())).toMatchObject({
      kind: 'refused',
      refusal: { reason: 'UNSPECIFIED' },
    })
  },
)

test.each(['internal', 'serviceUnavailable'])(
  'an error of category %s is no refusal, under any status',
  async (errorCategory) => {
    const { driver } = await played(reply(400, { errorCategory, errorCode: 'genericError' }))
    expect(await driver.collect(asked('+22370000001'), call())).toMatchObject({ kind: 'unknown' })
  },
)

test.each(['Frozen', 'constructor'])(
  'the status %s, which the map does not have, is pending',
  async (transactionStatus) => {
    const transaction = { transactionReference: 'R1', transactionStatus, amount: '5000', currency: 'XOF' }
    const { driver } = await played((response, seen) =>
      reply(seen.method === 'POST' ? 201 : 200, transaction)(response, seen),
    )
    expect(await driver.collect(asked('+22370000001'), call())).toMatchObject({
      kind: 'accepted',
      handle: { operatorRef: 'R1' },
    })
    const handle = { ...newHandle(), operatorRef: 'R1' }
    expect(await driver.query('collect', handle, call())).toEqual({ kind: 'pending' })
  },
)

test('an operator with words of its own is understood by its map', async () => {
  const transaction = {
    transactionReference: 'R1',
    transactionStatus: 'PAID_OUT',
    amount: '5000',
    currency: 'XOF',
  }
  const { driver } = await played(reply(200, transaction), { statusMap: { paid_out: 'settled' } })
  expect(await driver.query('collect', newHandle(), call())).toMatchObject({ kind: 'settled' })
})

test('evidence in another currency is none', async () => {
  const transaction = {
    transactionReference: 'R1',
    transactionStatus: 'completed',
    amount: '5000',
    currency: 'EUR',
  }
  const { driver } = await played(reply(200, transaction))
  expect(await driver.query('collect', newHandle(), call())).toEqual({
    kind: 'unreachable',
    cause: 'unreadable_amount',
  })
})

test.each([
  'https://elsewhere.test/transactions/R1',
  '//elsewhere.test/transactions/R1',
  'http://127.0.0.1:1/op-a/v1.2/mm/transactions/R1',
])('the foreign link %s is not followed', async (link) => {
  const { script, driver } = await played(reply(200, { link }))
  expect(await driver.query('collect', newHandle(), call())).toEqual({
    kind: 'unreachable',
    cause: 'unreadable',
  })
  expect(script.seen).toHaveLength(1)
})

test.each(['/transactions/R1', 'transactions/R1', '/op-a/v1.2/mm/transactions/R1', 'absolute'])(
  'the own link %s is followed',
  async (link) => {
    const { script, driver } = await played((response, seen) => {
      if (!seen.path.includes('/responses/'))
        return reply(200, { transactionReference: 'R1', transactionStatus: 'pending' })(response, seen)
      const own = link === 'absolute' ? `${script.url}/op-a/v1.2/mm/transactions/R1` : link
      return reply(200, { link: own })(response, seen)
    })
    expect(await driver.query('collect', newHandle(), call())).toEqual({ kind: 'pending' })
    expect(script.seen[1]?.path).toBe('/op-a/v1.2/mm/transactions/R1')
  },
)

test('a base address without a path works as well', async () => {
  const script = await scriptedOperator((response, seen) =>
    reply(
      200,
      seen.path.includes('/responses/') ? { link: `${script.url}/transactions/R1` } : { status: 'pending' },
    )(response, seen),
  )
  const driver = driverAt(script.url, 'A', { baseUrl: `${script.url}/` })
  const handle = newHandle()
  expect(await driver.query('collect', handle, call())).toEqual({ kind: 'pending' })
  expect(script.seen.map(({ path }) => path)).toEqual([
    `/responses/${handle.correlationId}`,
    '/transactions/R1',
  ])
})

test('a name that is half a character, or no address, does no harm', async () => {
  const { script, driver } = await played(reply(202, { status: 'completed', objectReference: '\ud800' }))
  expect(await driver.collect(asked('+22370000001'), call())).toMatchObject({ kind: 'accepted' })
  script.act = reply(200, { link: '/transactions/%E0%A4' })
  expect(await driver.cancel?.(newHandle(), call())).toBe('cancelled')
})

test('links that lead in a circle end', async () => {
  const { script, driver } = await played(reply(200, { link: '/responses/again' }))
  expect(await driver.query('collect', newHandle(), call())).toMatchObject({ kind: 'unreachable' })
  expect(script.seen.length).toBeLessThan(8)
})

test('a 404 that is not the own answer of the operator is not absence', async () => {
  const { driver } = await played(reply(404, { message: 'no route' }))
  expect(await driver.query('collect', newHandle(), call())).toEqual({
    kind: 'unreachable',
    cause: 'unmapped',
  })
})

test('an error object on the first step is trouble, not the fate of the operation', async () => {
  const { driver } = await played(reply(200, { errorCategory: 'businessRule', errorCode: 'genericError' }))
  expect(await driver.query('collect', newHandle(), call())).toMatchObject({ kind: 'unreachable' })
})

test('a statement with a page missing is unreachable, never shorter', async () => {
  const entry = {
    transactionReference: 'R',
    amount: '5',
    displayType: 'in',
    creationDate: '2026-01-31T10:00:00Z',
  }
  const { driver } = await played((response, seen) =>
    seen.path.includes('offset=0')
      ? reply(200, [entry, entry], { 'x-records-available-count': '3' })(response, seen)
      : reply(500, {})(response, seen),
  )
  expect(await driver.statement('2026-01-31', call())).toEqual({ kind: 'unreachable', cause: 'http_5xx' })
})

test.each([
  [{ serviceStatus: 'Available' }, { status: 'available' }],
  [
    { serviceStatus: 'degraded', delay: 4_000, plannedRestorationTime: '2026-11-21T12:00:00Z' },
    { status: 'degraded', delayMs: 4_000, until: new Date('2026-11-21T12:00:00Z') },
  ],
  [{ serviceStatus: 'unavailable' }, { status: 'unavailable' }],
  [{ serviceStatus: 'who knows' }, { status: 'unavailable' }],
])('the heartbeat %j is %j', async (body, health) => {
  const { driver } = await played(reply(200, body))
  expect(await driver.health(call())).toMatchObject(health)
})

test('an operator whose polls are used up is asked in another way', async () => {
  const { script, driver } = await played(reply(404, {}), { flow: 'polling' })
  const handle = { ...newHandle(), serverCorrelationId: 's1' }
  await driver.query('collect', { ...handle, pollsLeft: 1 }, call())
  await driver.query('collect', { ...handle, pollsLeft: 0 }, call())
  expect(script.seen.map(({ path }) => path.split('/').at(-2))).toEqual(['requeststates', 'responses'])
})
