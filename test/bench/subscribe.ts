import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Child, startChild } from './child.ts'
import { quantile } from './load.ts'
import type { Pace } from './pace.ts'
import type { LimitQuestion } from './processes/fan-out-limit.ts'
import type { LiveOptions, LiveQuestion, LiveReady } from './processes/live-product.ts'
import type { ReadersAnswer, ReadersOptions, ReadersQuestion } from './processes/readers.ts'
import type { Measurement, Section, Workload } from './rounds.ts'

/** How many readers one merchant has. */
const loads = [1_000, 5_000]

/** Many events: each goes to the readers of one merchant, the merchants in turn. */
const busy = { readers: 1_000, merchants: 50, perSecond: 200 }
/** An event that a reader does not have by then counts as so late. */
const patienceMs = 10_000

/**
 * Events to all readers of a merchant, against one buffer written to as many connections: at a rate, from the
 * INSERT on, and one alone.
 */
export const subscribe: Workload = async (fixture) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'merchant-payments-bench-'))
  const readers = [...loads, ...Array.from({ length: busy.merchants }, () => busy.readers / busy.merchants)]
  const options: LiveOptions = { databaseUrl: fixture.url, dataDir, readers }
  const product = await startChild<LiveReady>('live-product.ts', options)
  const children: Child<unknown>[] = [product]
  const sections: Section[] = [await busySection(product, children)]

  for (const [index, count] of loads.entries()) {
    const { merchantId = 0, tokens = [] } = product.ready.merchants[index] ?? {}
    const limit = await startChild<{ port: number }>('fan-out-limit.ts', {})
    const ask = (asked: LiveQuestion) => product.ask(asked)
    const read = (port: number, shown: readonly string[]) =>
      startChild('readers.ts', { port, count, tokens: shown, groups: 1 } satisfies ReadersOptions)
    const [plain, live] = await Promise.all([read(limit.ready.port, []), read(product.ready.port, tokens)])
    children.push(limit, plain, live)
    while ((await ask({ streamsOf: merchantId })) !== count) await sleep(100)
    const event = (from: 'insert' | 'notification') => () => ask({ eventOf: merchantId, from })
    const { bytes } = await events(live, 1, event('insert'))
    sections.push({
      title: `one event to ${count} readers`,
      unit: 'ms, p99',
      entries: [
        {
          name: 'limit: one buffer to plain connections',
          processes: [limit.pid],
          measure: (seconds) => turn(seconds, count, plain, () => limit.ask({ bytes })),
        },
        {
          name: 'GraphQL over WebSockets, from the INSERT on',
          processes: [product.pid],
          measure: (seconds) => turn(seconds, count, live, event('insert')),
        },
        {
          name: 'without the INSERT: from the notification on',
          processes: [product.pid],
          goal: { ratioMax: 1.5 },
          measure: (seconds) => turn(seconds, count, live, event('notification')),
        },
      ],
    })
  }
  return {
    sections,
    notes: [
      'The readers of each side are a process of its own with plain connections. The service commits the',
      'event, numbers it, notifies and reads it. At a rate: the p99 of all events, each until 99 of 100',
      `of its readers have it (${patienceMs / 1_000} s where that is later). One event: one at a time, the`,
      'median of their p99. Without the INSERT: from the moment at which the service hears of the event.',
    ],
    async close() {
      await Promise.all(children.map((child) => child.close()))
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

/** The readers of many merchants, at a rate of events. */
async function busySection(product: Child<LiveReady>, children: Child<unknown>[]): Promise<Section> {
  const merchants = product.ready.merchants.slice(loads.length)
  const tokens = merchants.flatMap((merchant) => merchant.tokens)
  const limit = await startChild<{ port: number }>('fan-out-limit.ts', {})
  const read = (port: number, shown: readonly string[]) => {
    const options: ReadersOptions = { port, count: busy.readers, tokens: shown, groups: busy.merchants }
    return startChild('readers.ts', options)
  }
  const [plain, live] = await Promise.all([read(limit.ready.port, []), read(product.ready.port, tokens)])
  children.push(limit, plain, live)
  const eventsOf = merchants.map(({ merchantId }) => merchantId)
  for (const merchantId of eventsOf)
    while ((await product.ask({ streamsOf: merchantId })) !== busy.readers / busy.merchants) await sleep(100)
  const pace = (seconds: number): Pace => ({ perSecond: busy.perSecond, seconds })
  return {
    title: `${busy.perSecond} events a second, ${busy.readers} readers of ${busy.merchants} merchants`,
    unit: 'ms, p99',
    entries: [
      {
        name: 'limit: one buffer to plain connections',
        processes: [limit.pid],
        measure: (seconds) =>
          busyTurn(seconds, plain, (whole) =>
            limit.ask({
              bytes: frameBytes,
              pace: pace(whole),
              groups: busy.merchants,
            } satisfies LimitQuestion),
          ),
      },
      {
        name: 'GraphQL over WebSockets, from the INSERT on',
        processes: [product.pid],
        measure: (seconds) =>
          busyTurn(seconds, live, (whole) => product.ask({ eventsOf, pace: pace(whole) })),
      },
    ],
  }
}

/** About the size of an event as a reader gets it. */
const frameBytes = 300

async function turn(
  seconds: number,
  count: number,
  readers: Child<unknown>,
  begin: () => Promise<unknown>,
): Promise<Measurement> {
  const slowest: number[] = []
  for (const end = performance.now() + seconds * 1_000; performance.now() < end; ) {
    slowest.push(...(await events(readers, 1, begin)).tookMs)
    await sleep(pauseMs)
  }
  const p99Ms = quantile(slowest, 0.5)
  return { value: p99Ms, operations: slowest.length * count, p99Ms }
}

/** The pause keeps the work that an event leaves behind out of the next measurement. */
const pauseMs = 50

/** @param begin sends events for so many seconds: as many to each merchant */
async function busyTurn(
  seconds: number,
  readers: Child<unknown>,
  begin: (seconds: number) => Promise<unknown>,
): Promise<Measurement> {
  const count = Math.ceil((busy.perSecond * seconds) / busy.merchants) * busy.merchants
  const { tookMs } = await events(readers, count, () => begin(count / busy.perSecond))
  const p99Ms = quantile(tookMs, 0.99)
  return { value: p99Ms, operations: (count * busy.readers) / busy.merchants, p99Ms }
}

/** @returns how long each event took to nearly all readers */
async function events(
  readers: Child<unknown>,
  count: number,
  begin: () => Promise<unknown>,
): Promise<{ tookMs: number[]; bytes: number }> {
  const withinMs = patienceMs + (count * 1_000) / busy.perSecond
  const answer = readers.ask({ events: count, withinMs } satisfies ReadersQuestion)
  const began = (await begin()) as number[]
  const { moments, bytes } = (await answer) as ReadersAnswer
  const tookMs = moments.map((moment, n) =>
    moment === null ? patienceMs : (moment - (began[n] ?? Number.NaN)) / 1e6,
  )
  return { tookMs, bytes }
}
