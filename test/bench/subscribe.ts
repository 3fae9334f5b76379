import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Child, startChild } from './child.ts'
import type { LiveOptions, LiveQuestion, LiveReady } from './processes/live-product.ts'
import type { ReadersOptions, ReadersQuestion } from './processes/readers.ts'
import type { Measurement, Section, Workload } from './rounds.ts'

/** How many readers one merchant has. */
const loads = [1_000, 5_000]

const question: ReadersQuestion = { arrivals: true }

/** One event to all readers of a merchant, against one buffer written to as many connections. */
export const subscribe: Workload = async (fixture) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'merchant-payments-bench-'))
  const options: LiveOptions = { databaseUrl: fixture.url, dataDir, readers: loads }
  const product = await startChild<LiveReady>('live-product.ts', options)
  const children: Child<unknown>[] = [product]
  const sections: Section[] = []

  for (const [index, count] of loads.entries()) {
    const { merchantId = 0, tokens = [] } = product.ready.merchants[index] ?? {}
    const limit = await startChild<{ port: number }>('fan-out-limit.ts', {})
    const ask = (asked: LiveQuestion) => product.ask(asked)
    const read = (port: number, shown: readonly string[]) =>
      startChild('readers.ts', { port, count, tokens: shown } satisfies ReadersOptions)
    const [plain, live] = await Promise.all([read(limit.ready.port, []), read(product.ready.port, tokens)])
    children.push(limit, plain, live)
    while ((await ask({ streamsOf: merchantId })) !== count) await sleep(100)
    const event = (from: 'insert' | 'notification') => () => ask({ eventOf: merchantId, from })
    const { bytes } = await oneEvent(live, event('insert'))
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
          name: 'GraphQL over WebSockets',
          processes: [product.pid],
          goal: { ratioMax: 1.5 },
          measure: (seconds) => turn(seconds, count, live, event('notification')),
        },
        {
          name: '+ from the INSERT on',
          processes: [product.pid],
          measure: (seconds) => turn(seconds, count, live, event('insert')),
        },
      ],
    })
  }
  return {
    sections,
    notes: [
      'The readers of each side are a process of its own with plain connections; a turn is one event after',
      'the other, its value the median of their p99. Time runs from the moment at which the service hears of',
      'the event, which it then reads; from the INSERT on it also commits, numbers and notifies.',
    ],
    async close() {
      await Promise.all(children.map((child) => child.close()))
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

async function turn(
  seconds: number,
  count: number,
  readers: Child<unknown>,
  begin: () => Promise<unknown>,
): Promise<Measurement> {
  const slowest: number[] = []
  for (const end = performance.now() + seconds * 1_000; performance.now() < end; ) {
    const { times, began } = await oneEvent(readers, begin)
    const sorted = times.toSorted((a, b) => a - b)
    slowest.push(((sorted[Math.ceil(sorted.length * 0.99) - 1] ?? 0) - began) / 1e6)
    await sleep(pauseMs)
  }
  slowest.sort((a, b) => a - b)
  const p99Ms = slowest[slowest.length >> 1] ?? Number.NaN
  return { value: p99Ms, operations: slowest.length * count, p99Ms }
}

/** So that what an event leaves behind is not measured with the next. */
const pauseMs = 50

async function oneEvent(
  readers: Child<unknown>,
  begin: () => Promise<unknown>,
): Promise<{ began: number; times: number[]; bytes: number }> {
  const arrivals = readers.ask(question)
  const began = (await begin()) as number
  return { began, ...((await arrivals) as { times: number[]; bytes: number }) }
}
