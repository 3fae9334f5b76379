import { setTimeout as sleep } from 'node:timers/promises'
import type { Child } from './child.ts'
import { compare, type Sides } from './compare.ts'
import { quantile } from './load.ts'
import type { Pace } from './pace.ts'
import type { ReadersAnswer, ReadersOptions, ReadersQuestion } from './processes/readers.ts'
import type { BenchEntry, Measurement, Section } from './rounds.ts'

/** How many readers one merchant has. */
const loads = [1_000, 5_000]

/** Many events: each goes to the readers of one merchant, the merchants in turn. */
const busy = { readers: 1_000, merchants: 50, perSecond: 200 }
const readersOfBusy = Array.from({ length: busy.merchants }, () => busy.readers / busy.merchants)
/** An event that a reader does not have by then counts as so late. */
const patienceMs = 10_000

/**
 * Events to all readers of a merchant, against one buffer written to as many connections: at a rate, from the
 * INSERT on, and one alone.
 */
export const subscribe = compare({ merchants: [...loads, ...readersOfBusy] }, async (sides) => {
  const { merchants } = sides.product
  const sections: Section[] = [await busySection(sides, merchants.slice(loads.length))]
  for (const [index, count] of loads.entries())
    sections.push(await oneSection(sides, count, merchants.slice(index, index + 1)))
  return {
    sections,
    notes: [
      'The readers of each side are a process of its own with plain connections. The service commits the',
      'event, numbers it, notifies and reads it. At a rate: the p99 of all events, each until 99 of 100',
      `of its readers have it (${patienceMs / 1_000} s where that is later). One event: one at a time, the`,
      'median of their p99. Without the INSERT: from the moment at which the service hears of the event.',
    ],
  }
})

type Merchants = Sides['product']['merchants']

/** Opens as many plain readers of a limit as the merchants have readers. */
async function openReaders({ product, start, startProcess }: Sides, count: number, merchants: Merchants) {
  const limit = await start({ workload: 'subscribe' })
  const read = (port: number, tokens: readonly string[]) =>
    startProcess('readers.ts', { port, count, tokens, groups: merchants.length } satisfies ReadersOptions)
  const tokens = merchants.flatMap((merchant) => merchant.tokens)
  const [plain, live] = await Promise.all([read(limit.port, []), read(product.port, tokens)])
  for (const { merchantId } of merchants)
    while ((await product.ask({ streamsOf: merchantId })) !== count / merchants.length) await sleep(100)
  return { limit, plain, live }
}

const limitName = 'limit: one buffer to plain connections'
const liveName = 'GraphQL over WebSockets, from the INSERT on'

/** One event at a time to the readers of one merchant. */
async function oneSection(sides: Sides, count: number, merchants: Merchants): Promise<Section> {
  const { product } = sides
  const { limit, plain, live } = await openReaders(sides, count, merchants)
  const event = (from: 'insert' | 'notification') => () =>
    product.ask({ eventOf: merchants[0]?.merchantId ?? 0, from })
  const { bytes } = await events(live, 1, event('insert'))
  const ours = (name: string, from: 'insert' | 'notification'): BenchEntry => ({
    name,
    processes: [product.pid],
    measure: (seconds) => turn(seconds, count, live, event(from)),
  })
  return {
    title: `one event to ${count} readers`,
    unit: 'ms, p99',
    entries: [
      {
        name: limitName,
        processes: [limit.pid],
        measure: (seconds) => turn(seconds, count, plain, () => limit.ask({ event: { bytes } })),
      },
      ours(liveName, 'insert'),
      { ...ours('without the INSERT: from the notification on', 'notification'), goal: { ratioMax: 1.5 } },
    ],
  }
}

/** The readers of many merchants, at a rate of events. */
async function busySection(sides: Sides, merchants: Merchants): Promise<Section> {
  const { product } = sides
  const { limit, plain, live } = await openReaders(sides, busy.readers, merchants)
  const eventsOf = merchants.map(({ merchantId }) => merchantId)
  const groups = merchants.length
  const theirs = (pace: Pace) => limit.ask({ event: { bytes: frameBytes, pace, groups } })
  const ours = (pace: Pace) => product.ask({ eventsOf, pace })
  return {
    title: `${busy.perSecond} events a second, ${busy.readers} readers of ${busy.merchants} merchants`,
    unit: 'ms, p99',
    entries: [
      { name: limitName, processes: [limit.pid], measure: (seconds) => busyTurn(seconds, plain, theirs) },
      { name: liveName, processes: [product.pid], measure: (seconds) => busyTurn(seconds, live, ours) },
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

/** @param begin sends events at a pace: as many to each merchant */
async function busyTurn(
  seconds: number,
  readers: Child<unknown>,
  begin: (pace: Pace) => Promise<unknown>,
): Promise<Measurement> {
  const count = Math.ceil((busy.perSecond * seconds) / busy.merchants) * busy.merchants
  const { tookMs } = await events(readers, count, () =>
    begin({ perSecond: busy.perSecond, seconds: count / busy.perSecond }),
  )
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
