import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createCircuit, createTripRule, healthOf, type Pass } from '../../src/operators/circuit.ts'
import { call } from '../kit/operators.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] }))
afterEach(() => void vi.useRealTimers())

const unhealthy = { kind: 'unknown', cause: 'response_lost' } as const
const healthy = { kind: 'refused' } as const

describe('healthOf', () => {
  test.each([
    'accepted',
    'settled',
    'refused',
    'pending',
    'reversed',
    'absent',
    'ok',
    'found',
    'statement',
    'not_ready',
  ])('%s is well', (kind) => expect(healthOf({ kind })).toBe('healthy'))
  test.each([
    'response_lost',
    'headers_timeout',
    'body_timeout',
    'http_5xx',
    'unreadable',
    'unmapped',
  ] as const)('unknown by %s is sick, as answer to a question too', (cause) => {
    expect(healthOf({ kind: 'unknown', cause })).toBe('unhealthy')
    expect(healthOf({ kind: 'unreachable', cause })).toBe('unhealthy')
  })
  test.each(['resend_refused', 'unreadable_amount', 'other_payment'] as const)(
    'unknown by %s is an answer',
    (cause) => expect(healthOf({ kind: 'unknown', cause })).toBe('healthy'),
  )
  test.each(['dns', 'connect', 'tls', 'token'] as const)('not sent by %s is sick', (cause) =>
    expect(healthOf({ kind: 'not_sent', cause })).toBe('unhealthy'),
  )
  test.each(['rate_limited', 'deadline_before_send', 'bulkhead_full', 'circuit_open'] as const)(
    'not sent by %s says nothing',
    (cause) => expect(healthOf({ kind: 'not_sent', cause })).toBe('unknown'),
  )
})

describe('the rule that opens', () => {
  test('after a probe the first failure opens, until a call succeeds', () => {
    const rule = createTripRule()
    rule.restart()
    expect(rule.callsLeft).toBe(1)
    expect(rule.failure()).toBe(true)
    rule.restart()
    rule.success()
    expect(rule.callsLeft).toBe(5)
    expect(rule.failure()).toBe(false)
  })

  test('the fifth failure in a row opens; a success in between starts the count again', () => {
    const rule = createTripRule()
    for (let count = 0; count < 4; count++) expect(rule.failure()).toBe(false)
    rule.success()
    for (let count = 1; count <= 5; count++) expect(rule.failure()).toBe(count === 5)
  })

  test('half of ten calls opens, half of nine does not', () => {
    const rule = createTripRule()
    rule.success()
    for (let pair = 0; pair < 4; pair++) {
      expect(rule.failure()).toBe(false)
      rule.success()
    }
    expect(rule.failure()).toBe(true)
  })

  test('less than half of many calls never opens', () => {
    const rule = createTripRule()
    for (let round = 0; round < 50; round++) {
      rule.success()
      rule.success()
      expect(rule.failure()).toBe(false)
    }
  })

  test('failures older than thirty seconds are forgotten', () => {
    const rule = createTripRule()
    for (let pair = 0; pair < 4; pair++) {
      rule.success()
      rule.failure()
    }
    vi.advanceTimersByTime(31_000)
    rule.success()
    expect(rule.failure()).toBe(false)
  })
})

describe('a circuit', () => {
  function circuit(probes: boolean[], doubtedMs = 10_000) {
    const log = { probed: 0, changes: 0 }
    const made = createCircuit({
      openMs: 10_000,
      doubtedMs,
      probe: async () => {
        log.probed += 1
        return probes.shift() ?? true
      },
      onChange: () => (log.changes += 1),
    })
    const enter = async (ms = 60_000): Promise<Pass> => {
      const pass = await made.enter(call({ ms }))
      if ('kind' in pass) throw new Error(`held back: ${pass.cause}`)
      return pass
    }
    const report = async (...outcomes: Parameters<typeof healthOf>[0][]) => {
      for (const outcome of outcomes) (await enter()).report(outcome)
    }
    const trip = () => report(unhealthy, unhealthy, unhealthy, unhealthy, unhealthy)
    return { made, log, enter, report, trip, pauseMs: () => made.refusal().retryAfterMs }
  }

  test('opens after five sick outcomes, and says when it will be tried again', async () => {
    const { made, log, trip, pauseMs } = circuit([])
    expect(made.closed).toBe(true)
    expect(pauseMs()).toBe(0)
    await trip()
    expect(made.closed).toBe(false)
    expect(await made.enter(call())).toEqual({
      kind: 'not_sent',
      cause: 'circuit_open',
      retryAfterMs: 10_000,
    })
    expect(log).toEqual({ probed: 0, changes: 1 })
  })

  test('refusals and being asked to slow down never open it', async () => {
    const { made, report } = circuit([])
    for (let count = 0; count < 50; count++)
      await report(healthy, { kind: 'not_sent', cause: 'rate_limited' })
    expect(made.closed).toBe(true)
  })

  test('an outcome that says nothing does not interrupt a row of failures', async () => {
    const { made, report } = circuit([])
    for (let count = 0; count < 5; count++)
      await report({ kind: 'not_sent', cause: 'rate_limited' }, unhealthy)
    expect(made.closed).toBe(false)
  })

  test('five calls leave for a silent operator; the sixth waits for its first answer', async () => {
    const { enter } = circuit([])
    const passes = await Promise.all(Array.from({ length: 5 }, () => enter()))
    const more = Array.from({ length: 7 }, () => enter())
    const left: number[] = []
    for (const [index, each] of more.entries()) void each.then(() => left.push(index))
    await vi.advanceTimersByTimeAsync(0)
    expect(left).toEqual([])
    // One good answer proves that the operator is there: five more may go.
    passes[0]?.report(healthy)
    await vi.advanceTimersByTimeAsync(0)
    expect(left).toEqual([0, 1, 2, 3, 4])
    // A failure is one of the five, an outcome that says nothing is none.
    const [failed, throttled, unknown] = await Promise.all(more.slice(0, 3))
    failed?.report(unhealthy)
    await vi.advanceTimersByTimeAsync(0)
    expect(left).toHaveLength(5)
    throttled?.report({ kind: 'not_sent', cause: 'rate_limited' })
    unknown?.report(null)
    await vi.advanceTimersByTimeAsync(0)
    expect(left).toEqual([0, 1, 2, 3, 4, 5, 6])
  })

  test('a call that waits for the first answer leaves at its deadline, or at an opening', async () => {
    const { made, enter } = circuit([])
    const passes = await Promise.all(Array.from({ length: 5 }, () => enter()))
    const late = made.enter(call({ ms: 2_000 }))
    const held = made.enter(call({ ms: 60_000 }))
    await vi.advanceTimersByTimeAsync(1_500)
    expect(await late).toEqual({ kind: 'not_sent', cause: 'deadline_before_send' })
    for (const pass of passes) pass.report(unhealthy)
    expect(await held).toMatchObject({ cause: 'circuit_open' })
  })

  test('a call that waited so long that no answer would come in time is not sent', async () => {
    const { made, enter } = circuit([])
    const passes = await Promise.all(Array.from({ length: 5 }, () => enter(10_000)))
    const burst = Array.from({ length: 40 }, () => made.enter(call({ ms: 10_000 })))
    const patient = Array.from({ length: 5 }, () => enter(20_000))
    await vi.advanceTimersByTimeAsync(6_000)
    for (const pass of passes) pass.report(healthy)
    for (const turn of await Promise.all(burst))
      expect(turn).toEqual({ kind: 'not_sent', cause: 'deadline_before_send' })
    expect(await Promise.all(patient)).toHaveLength(5)
    expect(made.closed).toBe(true)
  })

  test('closes by a good probe alone, and by no outcome that is reported while it is open', async () => {
    const { made, log, enter, trip } = circuit([true])
    const [slow, quick] = [await enter(), await enter()]
    quick.report(healthy)
    await trip()
    await vi.advanceTimersByTimeAsync(9_999)
    slow.report(healthy)
    expect(made.closed).toBe(false)
    expect(log.probed).toBe(0)
    await vi.advanceTimersByTimeAsync(1)
    expect(log).toEqual({ probed: 1, changes: 2 })
    expect(made.closed).toBe(true)
  })

  test('a call that began before an opening says nothing after the probe', async () => {
    const { made, enter, report, trip } = circuit([true])
    const slow = await enter()
    await report(healthy)
    await trip()
    await vi.advanceTimersByTimeAsync(10_000)
    slow.report(unhealthy)
    expect(made.closed).toBe(true)
  })

  test('after the probe calls go one at a time, until one is answered', async () => {
    const { enter, trip } = circuit([true])
    await trip()
    await vi.advanceTimersByTimeAsync(10_000)
    const first = await enter()
    const others = Promise.all(Array.from({ length: 5 }, () => enter()))
    let left = false
    void others.then(() => (left = true))
    await vi.advanceTimersByTimeAsync(0)
    expect(left).toBe(false)
    first.report(healthy)
    expect(await others).toHaveLength(5)
  })

  test('bad probes double the pause up to two minutes', async () => {
    const { made, log, trip, pauseMs } = circuit(Array.from({ length: 20 }, () => false))
    await trip()
    for (const pause of [10_000, 20_000, 40_000, 80_000, 120_000, 120_000]) {
      const before = log.probed
      expect(pauseMs()).toBe(pause)
      await vi.advanceTimersByTimeAsync(pause - 1)
      expect(log.probed).toBe(before)
      await vi.advanceTimersByTimeAsync(1)
      expect(log.probed).toBe(before + 1)
      expect(made.closed).toBe(false)
    }
  })

  test('good probes and failing calls lengthen the pause, until a call succeeds', async () => {
    const { made, report, trip, pauseMs } = circuit([])
    await trip()
    for (const pause of [10_000, 20_000, 40_000]) {
      expect(pauseMs()).toBe(pause)
      await vi.advanceTimersByTimeAsync(pause)
      expect(made.closed).toBe(true)
      await report(unhealthy)
    }
    await vi.advanceTimersByTimeAsync(80_000)
    await report(healthy)
    await trip()
    expect(pauseMs()).toBe(10_000)
  })

  test('an operator that says it is well while no call succeeds is left alone for longer', async () => {
    const { made, log, report, trip, pauseMs } = circuit([], 60_000)
    await trip()
    await vi.advanceTimersByTimeAsync(0)
    expect(log.probed).toBe(1)
    for (const pause of [60_000, 120_000, 120_000]) {
      expect(pauseMs()).toBe(pause)
      await vi.advanceTimersByTimeAsync(pause)
      expect(made.closed).toBe(true)
      await report(unhealthy)
      await vi.advanceTimersByTimeAsync(0)
    }
  })

  test('an operator that admits its outage is believed when it says that it is over', async () => {
    const { made, log, trip, pauseMs } = circuit([false, false, true], 60_000)
    await trip()
    await vi.advanceTimersByTimeAsync(10_000)
    expect(log.probed).toBe(2)
    expect(pauseMs()).toBe(20_000)
    await vi.advanceTimersByTimeAsync(20_000)
    expect(log.probed).toBe(3)
    expect(made.closed).toBe(true)
  })

  test('a closed-down circuit probes no more, and lets no call go', async () => {
    const { made, log, enter, trip } = circuit([])
    await Promise.all(Array.from({ length: 5 }, () => enter()))
    const waiting = made.enter(call())
    made.close()
    expect(await waiting).toMatchObject({ cause: 'circuit_open' })
    expect(made.closed).toBe(false)
    await expect(trip()).rejects.toThrow('held back')
    await vi.advanceTimersByTimeAsync(600_000)
    expect(log.probed).toBe(0)
  })
})
