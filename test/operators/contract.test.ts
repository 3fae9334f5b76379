import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createCheckoutDriver } from '../../src/operators/checkout-session.ts'
import { createGsmaDriver } from '../../src/operators/gsma-mm.ts'
import type { CallContext, OperatorDriver } from '../../src/operators/operator.ts'
import { sha256 } from '../../src/operators/http-client.ts'
import {
  type FaultAct,
  call,
  checkoutSettings,
  customer,
  deps,
  faults,
  gsmaSettings,
  newHandle,
  reply,
  scriptedOperator,
} from '../kit/operators.ts'

/**
 * Answers that no operator with the protocol would give; `test/conformance` certifies the rest of the
 * contract.
 */
const strangeFaults = faults.filter(({ cause }) => cause === 'unreadable')

/** Both protocols, each with the answers that settle, refuse and redirect in its own words. */
const protocols = [
  {
    name: 'gsma-mm',
    make: (url: string): OperatorDriver => createGsmaDriver(gsmaSettings(url), deps),
    settledWith: (amount: string) =>
      reply(
        201,
        `{"transactionReference":"R1","transactionStatus":"completed","amount":${amount},"currency":"XOF"}`,
      ),
    floatEmpty: reply(400, { errorCategory: 'businessRule', errorCode: 'insufficientFunds' }),
    refusals: [
      reply(400, { errorCategory: 'businessRule', errorCode: 'maxBalanceExceeded' }),
      reply(401, { errorCategory: 'authorisation', errorCode: 'requestDeclined' }),
      reply(404, { errorCategory: 'identification', errorCode: 'identifierError' }),
      reply(202, {
        status: 'failed',
        serverCorrelationId: 's',
        error: { errorCategory: 'businessRule', errorCode: 'incorrectState' },
      }),
    ],
  },
  {
    name: 'checkout-session',
    make: (url: string): OperatorDriver => createCheckoutDriver(checkoutSettings(url), deps),
    settledWith: (amount: string) =>
      reply(200, `{"id":"pt-1","status":"succeeded","receive_amount":${amount},"currency":"XOF"}`),
    floatEmpty: reply(400, { code: 'insufficient-funds' }),
    refusals: [
      reply(400, { code: 'recipient-account-inactive' }),
      reply(422, { code: 'request-validation-error' }),
      reply(403, { code: 'invalid-wallet' }),
      reply(200, { id: 'pt-1', status: 'failed', payout_error: { error_code: 'recipient-limit-exceeded' } }),
    ],
  },
]

/** Names of both protocols; the values that they get make no sense, or nearly. */
const names = [
  'status transactionStatus transactionReference objectReference link amount currency errorCode',
  'errorCategory error fees debitParty expiryTime id checkout_status payment_status launch_url',
  'result items page_info code receive_amount when_expires',
].flatMap((line) => line.split(' '))
const anyAnswer = fc.dictionary(
  fc.constantFrom(...names),
  fc.oneof(
    fc.jsonValue(),
    fc.constantFrom(
      'completed',
      'failed',
      'open',
      'complete',
      'succeeded',
      'expired',
      'XOF',
      'constructor',
      '5000',
    ),
    fc.constantFrom(
      '\ud800',
      '/transactions/%E0%A4',
      'https://elsewhere.test/',
      '//',
      '..',
      'http://',
      '__proto__',
    ),
  ),
)

const request = { callbackUrl: 'http://127.0.0.1:9/x', amount: 500n, attempt: 1 }
const collectRequest = {
  ...request,
  payer: customer,
  successUrl: 'https://shop.test/a',
  cancelUrl: 'https://shop.test/b',
}
const original = { ...newHandle(), operatorRef: 'R0', sessionId: 'cos-0' }

const moneyCalls = {
  collect: (driver: OperatorDriver, ctx: CallContext, attempt = 1) =>
    driver.collect({ ...collectRequest, handle: newHandle(), attempt }, ctx),
  disburse: (driver: OperatorDriver, ctx: CallContext, attempt = 1) =>
    driver.disburse({ ...request, handle: newHandle(), payee: customer, attempt }, ctx),
  reverse: (driver: OperatorDriver, ctx: CallContext, attempt = 1) =>
    driver.reverse({ ...request, handle: newHandle(), original, attempt }, ctx),
}
type Question = (driver: OperatorDriver, ctx: CallContext) => Promise<{ kind: string }>
const questions: Record<string, Question> = {
  query: (driver: OperatorDriver, ctx: CallContext) => driver.query('collect', newHandle(), ctx),
  balance: (driver: OperatorDriver, ctx: CallContext) => driver.balance(ctx),
  statement: (driver: OperatorDriver, ctx: CallContext) => driver.statement('2026-01-31', ctx),
}

describe.each(protocols)('$name', ({ make, settledWith, refusals, floatEmpty }) => {
  const settled = settledWith('"700"')

  async function played(act: FaultAct) {
    const script = await scriptedOperator(act)
    const driver = make(script.url)
    onTestFinished(() => driver.close())
    return { driver, script }
  }

  /** All of them at once, each at an operator of its own. */
  function underFaults<T>(invoke: (driver: OperatorDriver, ctx: CallContext) => Promise<T>) {
    return Promise.all(
      strangeFaults.map(async ({ name, act, cause }) => {
        const { driver, script } = await played(act)
        const ctx = call()
        const outcome = await invoke(driver, ctx)
        const posts = script.seen.filter(({ method }) => method === 'POST').length
        const recorded = ctx.exchanges.filter(({ operation }) => operation in moneyCalls).length
        return { name, cause, outcome, posts, recorded }
      }),
    )
  }

  describe.each(Object.entries(moneyCalls))('%s', (_name, invoke) => {
    // Rules 1, 2 and 4.
    test('is unknown after every fault, was sent once, and is recorded', async () => {
      for (const { name, cause, outcome, posts, recorded } of await underFaults(invoke)) {
        const seen = 'cause' in outcome ? outcome.cause : undefined
        expect({ name, posts, recorded, kind: outcome.kind }).toEqual({
          name,
          posts: 1,
          recorded: 1,
          kind: 'unknown',
        })
        // An answer that is readable and fits no rule is unmapped: the outcome is as unknown.
        expect({ name, cause: seen }).toEqual({ name, cause: seen === 'unmapped' ? seen : cause })
      }
    })
  })

  test.each(Object.entries(questions))('%s is unreachable after every fault', async (_name, ask) => {
    for (const { name, outcome } of await underFaults(ask)) {
      expect({ name, kind: outcome.kind }).toEqual({ name, kind: 'unreachable' })
    }
  })

  // Rule 3.
  test.each([1, 2])(
    'an empty float sends nothing at the attempt %i, and refuses no disbursement for ever',
    async (attempt) => {
      const { driver } = await played(floatEmpty)
      expect(await moneyCalls.disburse(driver, call(), attempt)).toMatchObject({
        kind: 'not_sent',
        cause: 'float_empty',
        refusal: { reason: 'FLOAT_INSUFFICIENT' },
      })
    },
  )

  test.each(refusals.map((act, index) => ({ act, index })))(
    'refusal $index is definitive',
    async ({ act }) => {
      const { driver } = await played(act)
      expect(await moneyCalls.disburse(driver, call())).toMatchObject({
        kind: 'refused',
        refusal: { code: expect.any(String) },
      })
    },
  )

  test.each(refusals.map((act, index) => ({ act, index })))(
    'refusal $index of a resend proves nothing',
    async ({ act }) => {
      const { driver } = await played(act)
      expect(await moneyCalls.disburse(driver, call(), 2)).toMatchObject({ kind: 'unknown' })
    },
  )

  // Rules 4 and 5.
  test('a settled amount is the word of the operator, with the digest of its bytes', async () => {
    const { driver } = await played(settled)
    const ctx = call()
    const outcome = await moneyCalls.disburse(driver, ctx)
    const body = ctx.exchanges.find(({ operation }) => operation === 'disburse')?.responseBody ?? ''
    expect(outcome).toMatchObject({
      kind: 'settled',
      evidence: { amount: 700n, source: 'sync', digest: sha256(body) },
    })
  })

  test.each(['"12.5"', '"-5"', '"1e3"', 'null', '"five"', '0', '"0.00"'])(
    'a settled amount of %s is no evidence',
    async (amount) => {
      const { driver } = await played(settledWith(amount))
      expect(await moneyCalls.disburse(driver, call())).toMatchObject({
        kind: 'unknown',
        cause: 'unreadable_amount',
      })
    },
  )

  // Rules 1 and 6, against an operator that says anything.
  test('no random answer makes a method throw, or leave its origin', async () => {
    const { driver, script } = await played(settled)
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(200, 201, 202, 400, 401, 404), anyAnswer, async (status, body) => {
        script.act = reply(status, body)
        const calls = [...Object.values(moneyCalls), ...Object.values(questions)]
        const outcomes = await Promise.all(calls.map((invoke) => invoke(driver, call())))
        expect(outcomes.every(({ kind }) => typeof kind === 'string')).toBe(true)
        await driver.cancel?.(newHandle(), call())
        await driver.lookupParty?.(customer, call())
        await driver.health(call())
        const raw = { method: 'PUT', headers: {}, pathToken: 'webhook', receivedAt: new Date() }
        driver.parseCallback({ ...raw, body: Buffer.from(JSON.stringify(body) ?? '') })
      }),
      { numRuns: 150 },
    )
  })

  test('no exchange holds a secret', async () => {
    const { driver } = await played(settled)
    const ctx = call()
    for (const invoke of Object.values(moneyCalls)) await invoke(driver, ctx)
    expect(ctx.exchanges.length).toBeGreaterThan(2)
    expect(JSON.stringify(ctx.exchanges)).not.toMatch(/sandbox-(secret|key)|token-\d/)
  })
})
