import { onTestFinished, expect, test } from 'vitest'
import { eventually } from '../kit/eventually.ts'
import { createOperators, type OperatorStatus } from '../../src/operators/registry.ts'
import {
  call,
  checkoutSettings,
  customer,
  deps,
  gsmaSettings,
  newHandle,
  reply,
  scriptedOperator,
  settingsOf,
  simulator,
} from '../kit/operators.ts'

const limits = {
  interactiveMax: 3,
  backgroundMax: 2,
  queueMax: 2,
  queriesMax: 4,
  requestsPerSecond: 1_000,
  breakerOpenMs: 100,
}

function collectRequest() {
  return {
    handle: newHandle(),
    amount: 500n,
    payer: customer,
    callbackUrl: 'http://127.0.0.1:9/x',
    attempt: 1,
  }
}

/** One operator that can be made sick, and what it saw. */
async function unhealthyOperator(more: { faultNumbers?: RegExp } = {}) {
  const state = { create: 'sick', heart: 'unavailable' }
  const script = await scriptedOperator((response, seen) => {
    if (seen.path.endsWith('/heartbeat')) return reply(200, { serviceStatus: state.heart })(response, seen)
    if (seen.method === 'GET')
      return reply(404, { errorCategory: 'identification', errorCode: 'identifierError' })(response, seen)
    if (state.create === 'sick') return response.destroy()
    if (state.create === 'busy') return reply(429, {})(response, seen)
    if (state.create === 'hangs') return undefined
    return reply(202, { status: 'pending', serverCorrelationId: 's1' })(response, seen)
  })
  const operators = createOperators([gsmaSettings(script.url, 'A', { limits, ...more })], deps)
  onTestFinished(() => operators.close())
  const operator = operators.find('OperatorA')
  if (!operator) throw new Error('no operator')
  const count = (method: string, end: string) =>
    script.seen.filter((seen) => seen.method === method && seen.path.endsWith(end)).length
  const changed = () =>
    new Promise<OperatorStatus>((resolve) => {
      const stop = operators.onChange((status) => {
        stop()
        resolve(status)
      })
    })
  return { state, script, operators, operator, count, changed }
}

test('a dead operator gets five money calls, then none, and no money call is ever the probe', async () => {
  const { state, operators, operator, count, changed } = await unhealthyOperator()
  const down = changed()
  for (let n = 0; n < 20; n++) await operator.collect(collectRequest(), call())
  expect(count('POST', '/merchantpay')).toBe(5)
  expect(await down).toMatchObject({ provider: 'OperatorA', collect: 'down', disburse: 'down' })
  expect(operator.availability('collect')).toBe('down')
  expect(operator.canStart('collect')).toMatchObject({ ok: false, cause: 'circuit_open' })
  expect(await operator.collect(collectRequest(), call())).toMatchObject({
    kind: 'not_sent',
    cause: 'circuit_open',
  })

  await eventually(() => expect(count('GET', '/heartbeat')).toBeGreaterThanOrEqual(2))
  expect(operator.availability('collect')).toBe('down')
  expect(count('POST', '/merchantpay')).toBe(5)

  const up = changed()
  Object.assign(state, { create: 'fine', heart: 'available' })
  expect(await up).toMatchObject({ collect: 'operational', disburse: 'operational' })
  expect(count('POST', '/merchantpay')).toBe(5)
  expect(operator.canStart('collect')).toEqual({ ok: true })
  expect(await operator.collect(collectRequest(), call())).toMatchObject({ kind: 'accepted' })
  expect(operators.list()).toMatchObject([{ provider: 'OperatorA', collect: 'operational' }])
})

test('an open circuit holds scripted failures back, and they never open it', async () => {
  const payer = '+22370200001'
  const { operator, count } = await unhealthyOperator({ faultNumbers: /^\+2237020/ })
  const { payer: _payer, ...payout } = collectRequest()
  for (let round = 0; round < 12; round += 1) {
    expect(await operator.collect({ ...collectRequest(), payer }, call())).toMatchObject({ kind: 'unknown' })
    await operator.disburse({ ...payout, handle: newHandle(), payee: payer }, call())
  }
  expect(operator.canStart('collect')).toEqual({ ok: true })
  expect(operator.availability('collect')).toBe('operational')
  for (let round = 0; round < 5; round += 1) await operator.collect(collectRequest(), call())
  expect(operator.canStart('collect')).toMatchObject({ ok: false, cause: 'circuit_open' })
  const before = count('POST', '/merchantpay')
  expect(await operator.collect({ ...collectRequest(), payer }, call())).toMatchObject({
    kind: 'not_sent',
    cause: 'circuit_open',
  })
  expect(count('POST', '/merchantpay')).toBe(before)
})

test('a sick creation does not stop the questions that clear up doubt', async () => {
  const { operator } = await unhealthyOperator()
  for (let n = 0; n < 5; n++) await operator.collect(collectRequest(), call())
  expect(operator.availability('collect')).toBe('down')
  expect(await operator.query('collect', newHandle(), call())).toMatchObject({ kind: 'absent' })
})

test('sick questions degrade an operator and stop no money', async () => {
  const { operator, script, changed } = await unhealthyOperator()
  script.act = (response, seen) => {
    if (seen.method === 'GET') return reply(500, {})(response, seen)
    return reply(202, { status: 'pending', serverCorrelationId: 's1' })(response, seen)
  }
  const degraded = changed()
  for (let n = 0; n < 5; n++) await operator.query('collect', newHandle(), call())
  expect(await degraded).toMatchObject({ collect: 'degraded' })
  const unreachable = { kind: 'unreachable', cause: 'circuit_open' }
  expect(await operator.query('collect', newHandle(), call())).toMatchObject(unreachable)
  expect(await operator.collect(collectRequest(), call())).toMatchObject({ kind: 'accepted' })
})

test('being asked to slow down closes nothing', async () => {
  const { state, operator, count } = await unhealthyOperator()
  state.create = 'busy'
  for (let n = 0; n < 12; n++) {
    expect(await operator.collect(collectRequest(), call())).toMatchObject({
      kind: 'not_sent',
      cause: 'rate_limited',
    })
  }
  expect(count('POST', '/merchantpay')).toBe(12)
  expect(operator.availability('collect')).toBe('operational')
})

test('a full lane turns calls away, waiting calls keep their deadline, batches do not fill it', async () => {
  const { state, operator, count } = await unhealthyOperator()
  state.create = 'hangs'
  const batch = Array.from({ length: 2 }, () =>
    operator.collect(collectRequest(), call({ ms: 1_500, priority: 'background' })),
  )
  const running = Array.from({ length: 3 }, () => operator.collect(collectRequest(), call({ ms: 1_500 })))
  expect(operator.canStart('collect')).toEqual({ ok: true })
  const waiting = Array.from({ length: 2 }, () => operator.collect(collectRequest(), call({ ms: 700 })))
  expect(operator.canStart('collect')).toMatchObject({ ok: false, cause: 'bulkhead_full' })
  expect(await operator.collect(collectRequest(), call())).toEqual({
    kind: 'not_sent',
    cause: 'bulkhead_full',
  })
  for (const outcome of await Promise.all(waiting)) {
    expect(outcome).toEqual({ kind: 'not_sent', cause: 'deadline_before_send' })
  }
  for (const outcome of await Promise.all([...running, ...batch])) {
    expect(outcome).toMatchObject({ kind: 'unknown', cause: 'headers_timeout' })
  }
  expect(count('POST', '/merchantpay')).toBe(5)
})

test('an opening circuit turns away new and waiting calls at once', async () => {
  const { state, operator, count } = await unhealthyOperator()
  const background = () => operator.collect(collectRequest(), call({ priority: 'background' }))
  state.create = 'hangs'
  let hanging = 3
  const running = Array.from({ length: 3 }, () =>
    operator.collect(collectRequest(), call({ ms: 1_500 })).finally(() => (hanging -= 1)),
  )
  await eventually(() => expect(count('POST', '/merchantpay')).toBe(3))
  state.create = 'fine'
  expect(await background()).toMatchObject({ kind: 'accepted' })
  const waiting = Array.from({ length: 2 }, () => operator.collect(collectRequest(), call()))
  state.create = 'sick'
  for (let n = 0; n < 5; n++) expect(await background()).toMatchObject({ kind: 'unknown' })
  const refusal = { kind: 'not_sent', cause: 'circuit_open', retryAfterMs: expect.any(Number) }
  expect(await operator.collect(collectRequest(), call())).toEqual(refusal)
  for (const outcome of await Promise.all(waiting)) expect(outcome).toEqual(refusal)
  expect(hanging).toBe(3)
  await Promise.all(running)
  expect(count('POST', '/merchantpay')).toBe(9)
})

test('one dead operator leaves the others as they are', async () => {
  const { url } = await simulator()
  const dead = checkoutSettings('http://127.0.0.1:1')
  const operators = createOperators(
    [...settingsOf(url).filter(({ driver }) => driver === 'gsma-mm'), dead],
    deps,
  )
  onTestFinished(() => operators.close())
  const addresses = { successUrl: 'https://shop.test/ok', cancelUrl: 'https://shop.test/no' }
  for (let n = 0; n < 6; n++)
    await operators.find('OperatorB')?.collect({ ...collectRequest(), ...addresses }, call())
  expect(operators.list().map(({ provider, collect }) => [provider, collect])).toEqual([
    ['OperatorA', 'operational'],
    ['OperatorC', 'operational'],
    ['OperatorD', 'operational'],
    ['OperatorB', 'down'],
  ])
  expect(await operators.find('OperatorA')?.collect(collectRequest(), call())).toMatchObject({
    kind: 'accepted',
  })
})

test('an operator that is not configured is not found', () => {
  expect(createOperators([], deps).find('OperatorA')).toBeNull()
})

test('closing ends calls in flight as unknown and waiting ones as not sent', async () => {
  const { state, operator, operators, script } = await unhealthyOperator()
  state.create = 'hangs'
  const running = Array.from({ length: 3 }, () => operator.collect(collectRequest(), call()))
  const waiting = operator.collect(collectRequest(), call())
  await eventually(() => expect(script.seen.length).toBe(3))
  await operators.close()
  for (const outcome of await Promise.all(running)) expect(outcome).toMatchObject({ kind: 'unknown' })
  expect(await waiting).toMatchObject({ kind: 'not_sent' })
  expect(await operator.collect(collectRequest(), call())).toMatchObject({ kind: 'not_sent' })
})

test('a withdrawal that fails counts as no good answer: the circuit of a dead operator opens', async () => {
  const { operator, count } = await unhealthyOperator()
  for (let n = 0; n < 5; n++) {
    await operator.collect(collectRequest(), call())
    expect(await operator.cancel?.({ ...newHandle(), operatorRef: 'T1' }, call())).toBe('unknown')
  }
  expect(count('PATCH', '/transactions/T1')).toBe(5)
  expect(operator.availability('collect')).toBe('down')
})

test('withdrawals that hang take no slot of a payment', async () => {
  const { state, operator, count } = await unhealthyOperator()
  state.create = 'hangs'
  const hanging = Array.from({ length: limits.interactiveMax + limits.queueMax }, async () =>
    operator.cancel?.(
      { ...newHandle(), operatorRef: 'T1' },
      call({ deadline: new Date(Date.now() + 2_000) }),
    ),
  )
  await eventually(() =>
    expect(count('PATCH', '/transactions/T1')).toBeGreaterThanOrEqual(limits.interactiveMax),
  )
  state.create = 'well'
  expect(operator.canStart('collect')).toEqual({ ok: true })
  expect(await operator.collect(collectRequest(), call())).toMatchObject({ kind: 'accepted' })
  expect(await Promise.all(hanging)).toContain('unknown')
})
