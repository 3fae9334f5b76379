import { randomUUID } from 'node:crypto'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { createCheckoutDriver } from '../../src/operators/checkout-session.ts'
import { createGsmaDriver } from '../../src/operators/gsma-mm.ts'
import type { AskedOperation, OperatorDriver } from '../../src/operators/operator.ts'
import { isSamePayment } from '../../src/operators/same-payment.ts'
import { createLog } from '../../src/telemetry/log.ts'
import {
  call,
  checkoutSettings,
  customer,
  deps,
  gsmaSettings,
  newHandle,
  reply,
  scriptedOperator,
  type Seen,
} from '../kit/operators.ts'

// The records that count as an answer, by both drivers: those about the payment that was asked about.

type Kind = 'collect' | 'disburse'
type Stands = 'paid' | 'failed' | 'open' | 'reversed'
interface Said {
  reference?: string | undefined
  payee?: string
  stands?: Stands
}
/** An answer of the operator: its status and body. */
type Answer = [status: number, body: unknown]
/** The question of a test: the driver call and the answers to its requests. */
interface Way {
  ask: (driver: OperatorDriver, kind: Kind, asked: AskedOperation) => Promise<object>
  answer: (seen: Seen, record: object) => Answer
}

const words = {
  gsma: { paid: 'completed', failed: 'failed', open: 'pending', reversed: 'reversed' },
  payout: { paid: 'succeeded', failed: 'failed', open: 'processing', reversed: 'reversed' },
  session: { paid: 'complete', failed: 'expired', open: 'open', reversed: 'complete' },
} as const

function gsmaRecord({ reference, payee = customer, stands = 'paid' }: Said) {
  return {
    transactionReference: 'R1',
    transactionStatus: words.gsma[stands],
    amount: '5000',
    currency: 'XOF',
    creditParty: [
      { key: 'accountid', value: '7' },
      { key: 'msisdn', value: payee },
    ],
    requestingOrganisationTransactionReference: reference,
  }
}

function checkoutRecord({ reference, payee = customer, stands = 'paid' }: Said, kind: Kind) {
  const session = {
    checkout_status: words.session[stands],
    payment_status: stands === 'paid' || stands === 'reversed' ? 'succeeded' : 'processing',
    launch_url: 'https://pay.test/c/1',
    ...(stands === 'reversed' ? { when_refunded: '2026-01-31T10:00:00Z' } : {}),
  }
  const one = kind === 'collect' ? session : { status: words.payout[stands], mobile: payee }
  return { id: 'ID-1', amount: '5000', receive_amount: '5000', client_reference: reference, ...one }
}

const absent: Answer = [404, { errorCategory: 'identification', errorCode: 'identifierError' }]
const send: Way['ask'] = (driver, kind, { payee: _payee, ...handle }) => driver[kind](asked(handle), call())
const named =
  (more: Partial<AskedOperation>): Way['ask'] =>
  (driver, kind, operation) =>
    driver.query(kind, { ...operation, ...more }, call())

function asked(handle: AskedOperation, attempt = 1) {
  const addresses = {
    callbackUrl: 'http://127.0.0.1:9/x',
    successUrl: 'http://x.test',
    cancelUrl: 'http://x.test',
  }
  return { handle, amount: 5_000n, payer: customer, payee: customer, attempt, ...addresses }
}

const completed = { status: 'completed', serverCorrelationId: 's1', objectReference: 'R1' }
const gsmaWays: Readonly<Record<string, Way>> = {
  'the first answer': { ask: send, answer: (_seen, record) => [201, record] },
  'the transaction that the first answer names': {
    ask: send,
    answer: ({ method }, record) => (method === 'POST' ? [202, completed] : [200, record]),
  },
  'a query by our id': {
    ask: named({}),
    answer: ({ path }, record) => [200, path.includes('/responses/') ? { link: '/transactions/R1' } : record],
  },
  'a query by the reference of the operator': {
    ask: named({ operatorRef: 'R1' }),
    answer: ({ path }, record) => (path.includes('/responses/') ? absent : [200, record]),
  },
  'a query by the state of the request': {
    ask: named({ serverCorrelationId: 's1' }),
    answer: ({ path }, record) =>
      path.includes('/responses/') ? absent : [200, path.includes('/requeststates/') ? completed : record],
  },
}
const checkoutWays: Readonly<Record<string, Way>> = {
  'the first answer': { ask: send, answer: (_seen, record) => [200, record] },
  'a query by the id of the operator': {
    ask: named({ sessionId: 'ID-1', serverCorrelationId: 'ID-1' }),
    answer: ({ path }, record) => [200, path.includes('/search') ? { result: [] } : record],
  },
  'a search by our reference': { ask: named({}), answer: (_seen, record) => [200, { result: [record] }] },
}

/** A driver of an operator with these answers, and the errors that it logs. */
async function opened(protocol: 'gsma-mm' | 'checkout-session', answer: (seen: Seen) => Answer) {
  const script = await scriptedOperator((response, seen) => reply(...answer(seen))(response, seen))
  const log = createLog('silent')
  const errors: unknown[][] = []
  vi.spyOn(log, 'error').mockImplementation((...line: unknown[]) => void errors.push(line))
  const driver =
    protocol === 'gsma-mm'
      ? createGsmaDriver(gsmaSettings(script.url, 'A', { flow: 'polling' }), { ...deps, log })
      : createCheckoutDriver(checkoutSettings(script.url), { ...deps, log })
  onTestFinished(() => driver.close())
  return { driver, errors, script }
}

const alarm = 'alarm: an operator answers about another payment'
const strange = { kind: expect.stringMatching(/^(unknown|unreachable)$/), cause: 'other_payment' }
const cases = (['collect', 'disburse'] as const).flatMap((kind) =>
  (['paid', 'failed', 'open', 'reversed'] as const).map((stands) => ({ kind, stands })),
)

describe.each(['gsma-mm', 'checkout-session'] as const)('%s', (protocol) => {
  const ways = protocol === 'gsma-mm' ? gsmaWays : checkoutWays
  const recordOf = (said: Said, kind: Kind) =>
    protocol === 'gsma-mm' ? gsmaRecord(said) : checkoutRecord(said, kind)

  async function answered(way: Way, kind: Kind, said: (operation: AskedOperation) => Said) {
    const operation = { ...newHandle(), ...(kind === 'disburse' ? { payee: customer } : {}) }
    const record = recordOf(said(operation), kind)
    const { driver, errors } = await opened(protocol, (seen) => way.answer(seen, record))
    return { outcome: await way.ask(driver, kind, operation), errors, operation, driver }
  }

  describe.each(Object.entries(ways))('%s', (_words, way) => {
    test('with another reference says nothing, in any state, and raises an alarm', async () => {
      for (const { kind, stands } of cases) {
        const reference = randomUUID()
        const { outcome, errors, operation, driver } = await answered(way, kind, () => ({
          reference,
          stands,
        }))
        expect({ kind, stands, ...outcome }).toMatchObject({ ...strange, kind: strange.kind })
        const { correlationId, clientRef } = operation
        const line = { correlationId, asked: { clientRef }, said: { clientRef: reference } }
        expect(errors[0]).toMatchObject([{ provider: driver.provider, ...line }, alarm])
        // The names of the other payment are not kept.
        const kept = 'handle' in outcome ? outcome.handle : { correlationId, clientRef }
        expect(kept).toEqual({ correlationId, clientRef })
      }
    })

    test('with another payee of a disbursement says nothing, in any state, and raises an alarm', async () => {
      for (const { stands } of cases) {
        const { outcome, errors } = await answered(way, 'disburse', ({ clientRef: reference }) => ({
          reference,
          payee: '+22370000002',
          stands,
        }))
        expect({ stands, ...outcome }).toMatchObject(strange)
        expect(errors[0]?.[1]).toBe(alarm)
      }
    })

    test('counts with our reference in any case, with none, and for another payer', async () => {
      for (const { kind, stands } of cases)
        for (const write of [String, (text: string) => text.toUpperCase(), () => undefined]) {
          const payee = kind === 'collect' ? '+22370000002' : '00223 70 00 00 01'
          const { outcome, errors } = await answered(way, kind, ({ clientRef }) => ({
            reference: write(clientRef),
            payee,
            stands,
          }))
          expect({ kind, stands, ...outcome }).not.toMatchObject({ cause: 'other_payment' })
          expect(errors).toEqual([])
        }
    })
  })
})

test('gsma-mm: the state of another request does not count, the answer about our own id does', async () => {
  const handle = { ...newHandle(), serverCorrelationId: 's1' }
  const own = gsmaRecord({ reference: handle.clientRef })
  let knows = true
  const { driver, errors } = await opened('gsma-mm', ({ path }) => {
    if (path.includes('/requeststates/')) return [200, { status: 'failed', serverCorrelationId: 's2' }]
    return knows ? [200, own] : absent
  })
  expect(await driver.query('collect', handle, call())).toMatchObject({ kind: 'settled' })
  expect(errors).toMatchObject([[{ asked: { requestId: 's1' }, said: { requestId: 's2' } }, alarm]])
  knows = false
  expect(await driver.query('collect', handle, call())).toMatchObject(strange)
})

test('checkout-session: of a search that ignores its filter only our reference counts', async () => {
  const handle = newHandle()
  const paid = checkoutRecord({ reference: 'another' }, 'collect')
  const nameless = checkoutRecord({}, 'collect')
  const failed = checkoutRecord({ reference: handle.clientRef, stands: 'failed' }, 'collect')
  let result: object[] = [paid, nameless, failed]
  const { driver, errors, script } = await opened('checkout-session', ({ method }) => [
    200,
    method === 'GET' ? { result } : failed,
  ])
  expect(await driver.query('collect', handle, call())).toMatchObject({ kind: 'refused' })
  result = [paid, nameless]
  // Such an answer proves no absence either: nothing is created, and no session of others is expired.
  expect(await driver.query('collect', handle, call())).toMatchObject(strange)
  result.push(checkoutRecord({ reference: 'another', stands: 'open' }, 'collect'))
  expect(await driver.collect(asked(handle, 2), call())).toMatchObject(strange)
  expect(await driver.cancel?.(handle, call())).toBe('unknown')
  expect(script.seen.filter(({ method }) => method === 'POST')).toEqual([])
  expect(errors.map(([, message]) => message)).toEqual(Array.from({ length: 4 }, () => alarm))
})

test('checkout-session: by its id another payment, by our reference ours: ours counts', async () => {
  const handle = { ...newHandle(), sessionId: 'ID-2' }
  const own = checkoutRecord({ reference: handle.clientRef, stands: 'failed' }, 'collect')
  const { driver } = await opened('checkout-session', ({ path }) => [
    200,
    path.includes('/search') ? { result: [own] } : checkoutRecord({ reference: 'another' }, 'collect'),
  ])
  expect(await driver.query('collect', handle, call())).toMatchObject({ kind: 'refused' })
})

test('checkout-session: a payout of ours to another number is not outweighed by a failed one', async () => {
  const handle = { ...newHandle(), payee: customer }
  const said = { reference: handle.clientRef }
  const other = checkoutRecord({ ...said, payee: '+22370000002' }, 'disburse')
  const { driver } = await opened('checkout-session', () => [
    200,
    { result: [checkoutRecord({ ...said, stands: 'failed' }, 'disburse'), other] },
  ])
  expect(await driver.query('disburse', handle, call())).toMatchObject(strange)
})

test('a reversal is answered by its own record, or by the reversed session of its id', async () => {
  const reversal = { ...newHandle(), sessionId: 'ID-1' }
  const session = checkoutRecord({ reference: 'the original', stands: 'reversed' }, 'collect')
  let id = 'ID-1'
  const checkout = await opened('checkout-session', () => [200, { ...session, id }])
  expect(await checkout.driver.query('reverse', reversal, call())).toMatchObject({ kind: 'settled' })
  id = 'ID-2'
  expect(await checkout.driver.query('reverse', reversal, call())).toMatchObject(strange)
  let reference = reversal.clientRef
  const gsma = await opened('gsma-mm', () => [200, gsmaRecord({ reference, payee: '+22370000002' })])
  expect(await gsma.driver.query('reverse', reversal, call())).toMatchObject({ kind: 'settled' })
  reference = 'another'
  expect(await gsma.driver.query('reverse', reversal, call())).toMatchObject(strange)
})

test.each([
  ['+22370000001', true],
  ['70 00 00 01', true],
  ['0022370000001', true],
  ['+223******01', true],
  ['+22370000002', false],
  ['70000002', false],
  ['+33612345678', false],
  ['-', true],
])('a record with the payee %s is about a disbursement to +22370000001: %s', (payee, is) => {
  expect(isSamePayment({ ...newHandle(), payee: customer }, { payee })).toBe(is)
  expect(isSamePayment(newHandle(), { payee })).toBe(true)
})

test('a payee in a writing with marks and long dashes is compared as a number', () => {
  const payment = { correlationId: 'c', clientRef: 'c', payee: '+22370000001' }
  expect(isSamePayment(payment, { payee: '\u202a+223 70\u201300\u201300\u201301\u202c' })).toBe(true)
  expect(isSamePayment(payment, { payee: '\u202a+223 70\u201300\u201300\u201302\u202c' })).toBe(false)
})
