import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { eventually } from '../kit/eventually.ts'
import type { OperatorSettings } from '../../src/config/operators.ts'
import type { CallContext, InitiateOutcome } from '../../src/operators/operator.ts'
import { createOperators, type Operator } from '../../src/operators/registry.ts'
import {
  call,
  customer,
  deps,
  gsmaSettings,
  newHandle,
  reply,
  scriptedOperator,
  simulator,
} from '../kit/operators.ts'

/** Time stands still unless a test moves it; sockets do not, so that what needs no time happens at once. */
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] }))
afterEach(() => void vi.useRealTimers())

const second = 1_000
const minute = 60 * second

/** Lets the sockets finish their work. */
async function settle(turns = 25): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve))
}

function collectFrom(
  operator: Operator,
  priority: CallContext['priority'] = 'interactive',
): Promise<InitiateOutcome> {
  return operator.collect(
    {
      handle: newHandle(),
      amount: 500n,
      payer: customer,
      attempt: 1,
      description: priority,
      callbackUrl: 'http://127.0.0.1:9/x',
    },
    call({ ms: 10_000, priority }),
  )
}

/** The operator that dies and one that lives, with the limits that real operators have. */
function pair(unhealthy: OperatorSettings, healthy: OperatorSettings) {
  const limits = {
    interactiveMax: 8,
    backgroundMax: 4,
    queriesMax: 8,
    queueMax: 32,
    requestsPerSecond: 1_000,
    breakerOpenMs: 10_000,
  }
  const operators = createOperators(
    [
      { ...unhealthy, limits },
      { ...healthy, limits },
    ],
    deps,
  )
  onTestFinished(() => operators.close())
  const [dead, alive] = [operators.find(unhealthy.provider), operators.find(healthy.provider)]
  if (!dead || !alive) throw new Error('no operator')
  return { operators, dead, alive }
}

/**
 * Sends four payments a step and two background calls, for the given time; the living operator gets one.
 * @returns how many calls of the living operator were answered without any time passing
 */
async function underLoad({ dead, alive }: ReturnType<typeof pair>, forMs: number, stepMs: number) {
  const living = { asked: 0, answeredAtOnce: 0 }
  for (let at = 0; at < forMs; at += stepMs) {
    for (const priority of eachStep) void collectFrom(dead, priority)
    const before = Date.now()
    living.asked += 1
    const answered = collectFrom(alive).then(({ kind }) => {
      if (kind === 'accepted' && Date.now() === before) living.answeredAtOnce += 1
    })
    // Its answer needs the sockets' time, never the clock's.
    await Promise.race([answered, settle(5_000)])
    await settle()
    vi.advanceTimersByTime(stepMs)
  }
  return living
}
const eachStep = [
  'interactive',
  'background',
  'interactive',
  'interactive',
  'background',
  'interactive',
] as const

/** The most of them within any minute. */
function mostInAMinute(times: readonly number[]): number {
  return Math.max(0, ...times.map((from) => times.filter((at) => at >= from && at < from + minute).length))
}

async function goodPayments(operator: Operator, count: number): Promise<void> {
  for (let n = 0; n < count; n++) expect(await collectFrom(operator)).toMatchObject({ kind: 'accepted' })
}

/** A simulator, and how many requests of a kind it saw. */
async function countingSimulator() {
  const played = await simulator()
  const count = async (method: string, end: string) => {
    const seen = (await played.control('GET', 'requests')) as { method: string; path: string }[]
    return seen.filter((request) => request.method === method && request.path.endsWith(end)).length
  }
  return {
    ...played,
    payments: () => count('POST', '/merchantpay'),
    heartbeats: () => count('GET', '/heartbeat'),
  }
}

test.each(['refuse', 'hang', '5xx'] as const)(
  'an operator dead (%s) under load: five money calls, no payment as probe; back by one probe',
  async (mode) => {
    const [unhealthy, healthy] = await Promise.all([countingSimulator(), simulator()])
    const stage = pair(gsmaSettings(unhealthy.url, 'A'), gsmaSettings(healthy.url, 'C'))
    await Promise.all([goodPayments(stage.dead, 12), goodPayments(stage.alive, 12)])
    await unhealthy.outage('OperatorA', mode)

    const living = await underLoad(stage, 75 * second, 500)
    expect(await unhealthy.payments()).toBe(12 + 5)
    expect(await unhealthy.heartbeats()).toBeGreaterThanOrEqual(3)
    expect(stage.dead.availability('collect')).toBe('down')
    expect(living).toEqual({ asked: 150, answeredAtOnce: 150 })

    await unhealthy.outage('OperatorA', 'none')
    const probes = await unhealthy.heartbeats()
    const start = stage.dead.canStart('collect')
    await vi.advanceTimersByTimeAsync(start.ok ? 0 : (start.retryAfterMs ?? 0))
    await eventually(() => expect(stage.dead.canStart('collect')).toEqual({ ok: true }))
    expect(await unhealthy.heartbeats()).toBe(probes + 1)
    expect(await unhealthy.payments()).toBe(12 + 5)
    await Promise.all([goodPayments(stage.dead, 10), goodPayments(stage.dead, 10)])
  },
)

test('an operator dead for payments, well by its own word: five calls a minute, then fewer', async () => {
  const left: number[] = []
  const { url } = await scriptedOperator((response, seen) => {
    if (seen.method !== 'POST') return reply(200, { serviceStatus: 'available' })(response, seen)
    left.push(Date.now())
    return response.destroy()
  })
  const healthy = await simulator()
  const stage = pair(gsmaSettings(url, 'A'), gsmaSettings(healthy.url, 'C'))
  expect(await underLoad(stage, 5 * minute, 2 * second)).toEqual({ asked: 150, answeredAtOnce: 150 })
  expect(mostInAMinute(left)).toBe(5)
  // One after the first minute, one after the next two.
  expect(left).toHaveLength(7)
})

test('a batch never holds up a checkout', async () => {
  const order: string[] = []
  const { url } = await scriptedOperator((response, seen) => {
    order.push(JSON.parse(seen.body).descriptionText as string)
    reply(202, { status: 'pending', serverCorrelationId: 's' })(response, seen)
  })
  const { dead: operator } = pair(gsmaSettings(url, 'A'), gsmaSettings(url, 'C'))
  vi.useRealTimers()
  // As the jobs do it: what finds the lane full is tried again later.
  let batchLeft = 300
  const work = async () => {
    while (batchLeft > 0) {
      const { kind } = await collectFrom(operator, 'background')
      if (kind === 'accepted') batchLeft -= 1
      else await settle(1)
    }
  }
  const batch = Promise.all(Array.from({ length: 60 }, work))
  for (let n = 0; n < 20; n++) {
    const before = order.length
    expect(await collectFrom(operator)).toMatchObject({ kind: 'accepted' })
    const ahead = order.slice(before, order.indexOf('interactive', before))
    // No more than what was on its way, and what those four sent next while it was.
    expect(ahead.length).toBeLessThanOrEqual(8)
  }
  expect(batchLeft).toBeGreaterThan(0)
  await batch
  expect(order.length).toBeGreaterThanOrEqual(320)
})
