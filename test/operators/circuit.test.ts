import { CircuitState } from 'cockatiel'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createCircuit, createLane, createTripRule, judge } from '../../src/operators/circuit.ts'
import { call } from './fixtures.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] }))
afterEach(() => void vi.useRealTimers())

const sick = { kind: 'unknown', cause: 'response_lost' } as const
const well = { kind: 'refused' } as const
const closed = CircuitState.Closed

describe('judge', () => {
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
  ])('%s is well', (kind) => expect(judge({ kind })).toBe('well'))
  test.each([
    'response_lost',
    'headers_timeout',
    'body_timeout',
    'http_5xx',
    'unreadable',
    'unmapped',
  ] as const)('unknown by %s is sick, as answer to a question too', (cause) => {
    expect(judge({ kind: 'unknown', cause })).toBe('sick')
    expect(judge({ kind: 'unreachable', cause })).toBe('sick')
  })
  test.each(['dns', 'connect', 'tls', 'token'] as const)('not sent by %s is sick', (cause) =>
    expect(judge({ kind: 'not_sent', cause })).toBe('sick'),
  )
  test.each(['rate_limited', 'deadline_before_send', 'lane_full', 'circuit_open'] as const)(
    'not sent by %s says nothing',
    (cause) => expect(judge({ kind: 'not_sent', cause })).toBe('silent'),
  )
})

describe('the rule that opens', () => {
  test('the fifth failure in a row opens; a success in between starts the count again', () => {
    const rule = createTripRule()
    for (let count = 0; count < 4; count++) expect(rule.failure(closed)).toBe(false)
    rule.success(closed)
    for (let count = 1; count <= 5; count++) expect(rule.failure(closed)).toBe(count === 5)
  })

  test('half of ten calls opens, half of nine does not', () => {
    const rule = createTripRule()
    rule.success(closed)
    for (let pair = 0; pair < 4; pair++) {
      expect(rule.failure(closed)).toBe(false)
      rule.success(closed)
    }
    expect(rule.failure(closed)).toBe(true)
  })

  test('less than half of many calls never opens', () => {
    const rule = createTripRule()
    for (let round = 0; round < 50; round++) {
      rule.success(closed)
      rule.success(closed)
      expect(rule.failure(closed)).toBe(false)
    }
  })

  test('failures older than thirty seconds are forgotten', () => {
    const rule = createTripRule()
    for (let pair = 0; pair < 4; pair++) {
      rule.success(closed)
      rule.failure(closed)
    }
    vi.advanceTimersByTime(31_000)
    rule.success(closed)
    expect(rule.failure(closed)).toBe(false)
  })
})

describe('a circuit', () => {
  function circuit(probes: boolean[], openMs = 10_000) {
    const log = { probed: 0, changes: 0 }
    const made = createCircuit({
      openMs,
      probe: async () => {
        log.probed += 1
        return probes.shift() ?? true
      },
      onChange: () => (log.changes += 1),
    })
    const trip = async () => {
      for (let count = 0; count < 5; count++) await made.report(sick)
    }
    return { made, log, trip }
  }

  test('opens after five sick outcomes, and says when it will be tried again', async () => {
    const { made, log, trip } = circuit([])
    expect(made.closed).toBe(true)
    expect(made.retryAfterMs()).toBe(0)
    await trip()
    expect(made.closed).toBe(false)
    expect(made.retryAfterMs()).toBe(10_000)
    expect(log).toEqual({ probed: 0, changes: 1 })
  })

  test('refusals and being asked to slow down never open it', async () => {
    const { made } = circuit([])
    for (let count = 0; count < 50; count++) {
      await made.report(well)
      await made.report({ kind: 'not_sent', cause: 'rate_limited' })
    }
    expect(made.closed).toBe(true)
  })

  test('what says nothing does not interrupt a row of failures', async () => {
    const { made } = circuit([])
    for (let count = 0; count < 5; count++) {
      await made.report(sick)
      await made.report({ kind: 'not_sent', cause: 'rate_limited' })
    }
    expect(made.closed).toBe(false)
  })

  test('closes by a good probe alone, whatever is reported while it is open', async () => {
    const { made, log, trip } = circuit([true])
    await trip()
    await vi.advanceTimersByTimeAsync(9_999)
    await made.report(well)
    expect(made.closed).toBe(false)
    expect(log.probed).toBe(0)
    await vi.advanceTimersByTimeAsync(1)
    expect(log).toEqual({ probed: 1, changes: 2 })
    expect(made.closed).toBe(true)
  })

  test('bad probes double the pause up to two minutes', async () => {
    const { made, log, trip } = circuit(Array.from({ length: 20 }, () => false))
    await trip()
    for (const pauseMs of [10_000, 20_000, 40_000, 80_000, 120_000, 120_000]) {
      const before = log.probed
      expect(made.retryAfterMs()).toBe(pauseMs)
      await vi.advanceTimersByTimeAsync(pauseMs - 1)
      expect(log.probed).toBe(before)
      await vi.advanceTimersByTimeAsync(1)
      expect(log.probed).toBe(before + 1)
      expect(made.closed).toBe(false)
    }
  })

  test('good probes and failing calls lengthen the pause, until a call succeeds', async () => {
    const { made, trip } = circuit([])
    for (const pauseMs of [10_000, 20_000, 40_000]) {
      await trip()
      expect(made.retryAfterMs()).toBe(pauseMs)
      await vi.advanceTimersByTimeAsync(pauseMs)
      expect(made.closed).toBe(true)
    }
    await made.report(well)
    await trip()
    expect(made.retryAfterMs()).toBe(10_000)
  })

  test('a closed-down circuit probes no more', async () => {
    const { made, log, trip } = circuit([])
    await trip()
    made.close()
    await vi.advanceTimersByTimeAsync(600_000)
    expect(log.probed).toBe(0)
    expect(made.closed).toBe(false)
  })
})

describe('a lane', () => {
  test('lets so many in, so many wait in order, and turns the rest away', async () => {
    const lane = createLane(2, 2)
    expect([await lane.enter(call()), await lane.enter(call())]).toEqual([null, null])
    const order: string[] = []
    const third = lane.enter(call()).then(() => order.push('third'))
    const fourth = lane.enter(call()).then(() => order.push('fourth'))
    expect(lane.hasRoom).toBe(false)
    expect(await lane.enter(call())).toEqual({ kind: 'not_sent', cause: 'lane_full' })
    lane.leave()
    await third
    lane.leave()
    await fourth
    const fifth = lane.enter(call()).then(() => order.push('fifth'))
    await vi.advanceTimersByTimeAsync(0)
    expect(order).toEqual(['third', 'fourth'])
    lane.leave()
    await fifth
    lane.leave()
    expect(lane.hasRoom).toBe(true)
    expect(await lane.enter(call())).toBeNull()
  })

  test('who waits leaves half a second before its deadline', async () => {
    const lane = createLane(1, 5)
    await lane.enter(call())
    const waiting = lane.enter(call({ ms: 2_000 }))
    await vi.advanceTimersByTimeAsync(1_500)
    expect(await waiting).toEqual({ kind: 'not_sent', cause: 'deadline_before_send' })
    lane.leave()
    expect(await lane.enter(call())).toBeNull()
  })

  test('who gives up leaves its place in the queue', async () => {
    const lane = createLane(1, 1)
    await lane.enter(call())
    const abort = new AbortController()
    const waiting = lane.enter(call({ signal: abort.signal }))
    abort.abort()
    expect(await waiting).toMatchObject({ kind: 'not_sent' })
    expect(lane.hasRoom).toBe(true)
  })

  test('closing sends everyone away', async () => {
    const lane = createLane(1, 1)
    await lane.enter(call())
    const waiting = lane.enter(call())
    lane.close()
    expect(await waiting).toMatchObject({ kind: 'not_sent', cause: 'circuit_open' })
    expect(await lane.enter(call())).toMatchObject({ kind: 'not_sent', cause: 'circuit_open' })
  })
})
