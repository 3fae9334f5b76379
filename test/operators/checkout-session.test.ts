import { expect, onTestFinished, test } from 'vitest'
import type { CheckoutSettings } from '../../src/config/operators.ts'
import { createCheckoutDriver } from '../../src/operators/checkout-session.ts'
import type { InitiateOutcome, OperatorHandle } from '../../src/operators/operator.ts'
import { startAtNoon } from '../kit/noon.ts'
import { call, checkoutSettings, deps, newHandle, simulator } from '../kit/operators.ts'

function driverAt(url: string, more: Partial<CheckoutSettings> = {}) {
  const driver = createCheckoutDriver(checkoutSettings(url, more), deps)
  onTestFinished(() => driver.close())
  return driver
}

async function simulated(more: Partial<CheckoutSettings> = {}) {
  const sim = await simulator()
  return { sim, driver: driverAt(sim.url, more) }
}

function number(scenario: string, parameter = '00'): string {
  return `+22370${scenario}${parameter}01`
}

function asked(phone: string, handle: OperatorHandle = newHandle(), attempt = 1) {
  const addresses = {
    successUrl: 'https://shop.test/ok',
    cancelUrl: 'https://shop.test/no',
    callbackUrl: 'unused',
  }
  return { handle, amount: 5_000n, payer: phone, payee: phone, attempt, ...addresses }
}

function handleOf(outcome: InitiateOutcome): OperatorHandle {
  if (!('handle' in outcome)) throw new Error(outcome.kind)
  return outcome.handle
}

test('a session is accepted with its page, then settled with evidence', async () => {
  const { sim, driver } = await simulated()
  const taken = await driver.collect(asked(number('00', '05')), call())
  expect(taken).toMatchObject({
    kind: 'accepted',
    duplicate: false,
    action: { type: 'redirect', url: expect.stringContaining(`${sim.url}/c/`) },
    handle: { sessionId: expect.stringMatching(/^cos-/) },
    expiresAt: expect.any(Date),
  })
  const handle = handleOf(taken)
  expect(await driver.query('collect', handle, call())).toMatchObject({ kind: 'pending' })
  await sim.advance(6_000)
  const settled = {
    kind: 'settled',
    evidence: { amount: 5_000n, source: 'query', settledAt: expect.any(Date) },
  }
  expect(await driver.query('collect', handle, call())).toMatchObject(settled)
})

test.each([
  ['01', 'PAYER_DECLINED'],
  ['02', 'PAYER_INSUFFICIENT_FUNDS'],
  ['03', 'PAYER_NOT_FOUND'],
  ['04', 'PAYER_LIMIT_REACHED'],
  ['05', 'PAYER_NOT_ALLOWED'],
  ['06', 'PAYER_AUTH_FAILED'],
  ['07', 'PAYER_BUSY'],
])('scenario %s is %s', async (scenario, reason) => {
  const { sim, driver } = await simulated()
  const handle = handleOf(await driver.collect(asked(number(scenario)), call()))
  await sim.advance(10_000)
  expect(await driver.query('collect', handle, call())).toMatchObject({
    kind: 'refused',
    refusal: { reason },
  })
})

test('a session that runs out is a timeout', async () => {
  const sim = await simulator()
  let ahead = 0
  const clock = { now: () => new Date(Date.now() + ahead) }
  const driver = createCheckoutDriver(checkoutSettings(sim.url), { ...deps, clock })
  onTestFinished(() => driver.close())
  const handle = handleOf(await driver.collect(asked(number('10', '02')), call()))
  await sim.advance((ahead = 121_000))
  const timeout = { kind: 'refused', refusal: { reason: 'PAYER_TIMEOUT' } }
  expect(await driver.query('collect', handle, call())).toMatchObject(timeout)
})

test('a session that we end is cancelled, also where only our reference is known', async () => {
  const { driver } = await simulated()
  const [first, second] = [asked(number('11')), asked(number('11'))]
  const handle = handleOf(await driver.collect(first, call()))
  await driver.collect(second, call())
  expect(await driver.cancel?.(handle, call())).toBe('cancelled')
  expect(await driver.cancel?.(second.handle, call())).toBe('cancelled')
  const cancelled = { kind: 'refused', refusal: { reason: 'CANCELLED' } }
  for (const ended of [handle, second.handle]) {
    expect(await driver.query('collect', ended, call())).toMatchObject(cancelled)
  }
  expect(await driver.cancel?.(newHandle(), call())).toBe('unknown')
})

test('a session that names no payer may be paid by any payer', async () => {
  const { sim, driver } = await simulated({ payerField: null })
  const taken = handleOf(await driver.collect(asked(number('01')), call()))
  await sim.advance(10_000)
  expect(await driver.query('collect', taken, call())).toMatchObject({ kind: 'pending' })
  await sim.control('POST', `transactions/${taken.sessionId}/confirm`)
  expect(await driver.query('collect', taken, call())).toMatchObject({ kind: 'settled' })
})

test('a resend uses the open session that the first call left', async () => {
  const { sim, driver } = await simulated()
  const request = asked(number('09'))
  const first = handleOf(await driver.collect(request, call()))
  const second = await driver.collect({ ...request, attempt: 2 }, call())
  expect(second).toMatchObject({
    kind: 'accepted',
    duplicate: true,
    handle: { sessionId: first.sessionId },
  })
  expect(await sim.operations(request.handle)).toHaveLength(1)
})

test('a resend leaves one open session and expires its orphans', async () => {
  const { sim, driver } = await simulated()
  const request = asked(number('09'))
  await driver.collect(request, call())
  const known = handleOf(await driver.collect(request, call()))
  await driver.collect(request, call())
  const again = await driver.collect({ ...request, handle: known, attempt: 2 }, call())
  expect(again).toMatchObject({ kind: 'accepted', handle: { sessionId: known.sessionId } })
  const states = (await sim.operations(request.handle)).map(({ id, state }) => [
    id === known.sessionId,
    state,
  ])
  expect(states).toEqual([
    [false, 'failed'],
    [true, 'pending'],
    [false, 'failed'],
  ])
})

test('a resend of a session that was paid meanwhile is settled', async () => {
  const { sim, driver } = await simulated()
  const request = asked(number('00'))
  await driver.collect(request, call())
  await sim.advance(1_000)
  const again = await driver.collect({ ...request, attempt: 2 }, call())
  expect(again).toMatchObject({ kind: 'settled', evidence: { amount: 5_000n, source: 'query' } })
})

test('a resend of a call that never arrived makes the session', async () => {
  const { driver } = await simulated()
  expect(await driver.collect(asked(number('09'), newHandle(), 2), call())).toMatchObject({
    kind: 'accepted',
    duplicate: false,
  })
})

test('an operation is found by our reference alone; one that never arrived is absent', async () => {
  const { sim, driver } = await simulated()
  const request = asked(number('00'))
  await driver.collect(request, call())
  await sim.advance(1_000)
  expect(await driver.query('collect', request.handle, call())).toMatchObject({ kind: 'settled' })
  for (const kind of ['collect', 'disburse', 'reverse'] as const) {
    expect(await driver.query(kind, newHandle(), call())).toEqual({
      kind: 'absent',
      asOf: expect.any(Date),
    })
  }
})

test('a failed session is no failure while another one of its reference is paid', async () => {
  const { sim, driver } = await simulated()
  const handle = newHandle()
  const declined = handleOf(await driver.collect(asked(number('01'), handle), call()))
  await driver.collect(asked(number('00'), handle), call())
  await sim.advance(5_000)
  expect(await driver.query('collect', declined, call())).toMatchObject({ kind: 'settled' })
})

test('a payout settles in its answer, with its fee, and once for one key', async () => {
  const { sim, driver } = await simulated()
  const request = asked(number('00'))
  const settled = {
    kind: 'settled',
    handle: { serverCorrelationId: expect.stringMatching(/^pt-/) },
    evidence: { amount: 5_000n, fee: 50n, source: 'sync', counterparty: number('00') },
  }
  expect(await driver.disburse({ ...request, description: 'x'.repeat(80) }, call())).toMatchObject(settled)
  expect(
    await driver.disburse({ ...request, description: 'x'.repeat(80), attempt: 2 }, call()),
  ).toMatchObject(settled)
  expect(await sim.operations(request.handle)).toHaveLength(1)
  expect(await driver.query('disburse', request.handle, call())).toMatchObject({
    kind: 'settled',
    evidence: { fee: 50n },
  })
  const otherBody = await driver.disburse({ ...request, amount: 6_000n }, call())
  expect(otherBody).toMatchObject({ kind: 'unknown', cause: 'unmapped' })
})

test.each([
  ['02', 'FLOAT_INSUFFICIENT'],
  ['03', 'PAYEE_NOT_FOUND'],
  ['04', 'PAYEE_LIMIT_REACHED'],
  ['05', 'PAYEE_NOT_ALLOWED'],
])('a payout of scenario %s is %s', async (scenario, reason) => {
  const { sim, driver } = await simulated()
  const request = asked(number(scenario))
  const first = await driver.disburse(request, call())
  await sim.advance(5_000)
  const outcome = first.kind === 'refused' ? first : await driver.query('disburse', request.handle, call())
  expect(outcome).toMatchObject({ kind: 'refused', refusal: { reason } })
})

test('a paid session is refunded whole and once', async () => {
  const { sim, driver } = await simulated()
  const original = handleOf(await driver.collect(asked(number('00', '05')), call()))
  const reversal = { ...asked(''), original }
  expect(await driver.reverse(reversal, call())).toMatchObject({
    kind: 'refused',
    refusal: { reason: 'NOT_REVERSIBLE' },
  })
  await sim.advance(6_000)
  const done = await driver.reverse(reversal, call())
  expect(done).toMatchObject({ kind: 'settled', evidence: { amount: 5_000n } })
  expect(await driver.reverse({ ...reversal, attempt: 2 }, call())).toMatchObject({ kind: 'settled' })
  expect(await driver.query('reverse', handleOf(done), call())).toMatchObject({ kind: 'settled' })
  expect(await driver.query('collect', original, call())).toMatchObject({ kind: 'reversed' })
  expect(await driver.balance(call())).toMatchObject({ current: 50_000_000n - 50n })
})

test('a payout is taken back, found by our reference alone', async () => {
  const { driver } = await simulated()
  const request = asked(number('00'))
  await driver.disburse(request, call())
  const done = await driver.reverse({ ...asked(''), original: request.handle }, call())
  expect(done).toMatchObject({ kind: 'settled', evidence: { amount: 5_000n } })
  expect(await driver.query('disburse', request.handle, call())).toMatchObject({ kind: 'reversed' })
  const nothing = await driver.reverse({ ...asked(''), original: newHandle() }, call())
  expect(nothing).toMatchObject({ kind: 'refused', refusal: { reason: 'NOT_REVERSIBLE' } })
})

test('the statement of a day has every movement and joins its opening to its closing', async () => {
  startAtNoon()
  const { sim, driver } = await simulated()
  const paid = asked(number('00'))
  const original = handleOf(await driver.collect(paid, call()))
  await sim.advance(1_000)
  for (let count = 0; count < 105; count++)
    await driver.disburse({ ...asked(number('00')), amount: 1_000n }, call())
  await driver.reverse({ ...asked(''), original }, call())
  const statement = await driver.statement(new Date().toISOString().slice(0, 10), call({ ms: 10_000 }))
  if (statement.kind !== 'statement') throw new Error(statement.kind)
  const balance = await driver.balance(call())
  expect(statement).toMatchObject({
    complete: false,
    closing: 'current' in balance ? balance.current : null,
  })
  const types = Map.groupBy(statement.lines, ({ type, direction }) => `${type} ${direction}`)
  expect(types.get('collect credit')).toMatchObject([
    { amount: 5_000n, fee: 50n, clientRef: paid.handle.clientRef },
  ])
  expect(types.get('disburse debit')).toHaveLength(105)
  expect(types.get('reversal debit')).toHaveLength(1)
  const moved = statement.lines.reduce(
    (sum, line) => sum + (line.direction === 'credit' ? line.amount : -line.amount) - line.fee,
    0n,
  )
  expect((statement.opening ?? 0n) + moved).toBe(statement.closing)
})

test('the answer about the balance decides the health', async () => {
  const { sim, driver } = await simulated()
  expect(await driver.health(call())).toMatchObject({ status: 'available' })
  await sim.outage('OperatorB', '5xx')
  expect(await driver.health(call())).toMatchObject({ status: 'unavailable' })
  expect(await driver.collect(asked(number('00')), call())).toMatchObject({
    kind: 'unknown',
    cause: 'http_5xx',
  })
})
