import { setTimeout as sleep } from 'node:timers/promises'
import { openWire, quantile, type Wire } from '../load.ts'
import type { SettledFeed } from './feed.ts'
import type { Kind } from './kinds.ts'

export interface Lives {
  /** Payments that were settled and seen. */
  count: number
  perSecond: number
  /** Until the answer of the request. */
  answered: Quantiles
  /** Until the subscriber saw the event, from the moment at which the request was due. */
  settled: Quantiles
}

export interface Quantiles {
  p50: number
  p99: number
}

export interface LifeSetup {
  kind: Kind
  ports: readonly number[]
  tokens: readonly string[]
  feed: SettledFeed
  seconds: number
}

/** Runs a number of clients; each pays again as soon as it has seen its payment settled. */
export async function liveInTurn(setup: LifeSetup, clients: number): Promise<Lives> {
  const log = new LifeLog(setup)
  const wires = await Promise.all(
    Array.from({ length: clients }, (_none, n) => openWire(setup.ports[n % setup.ports.length] ?? 0)),
  )
  const end = log.begun + setup.seconds * 1_000
  await Promise.all(
    wires.map(async (wire) => {
      while (performance.now() < end) await log.live(wire, performance.now())
    }),
  )
  for (const wire of wires) wire.close()
  return log.result()
}

/** Pays at a rate, and does not wait for earlier payments. */
export async function liveAtRate(setup: LifeSetup, perSecond: number): Promise<Lives> {
  const log = new LifeLog(setup)
  const free: Wire[][] = setup.ports.map(() => [])
  const under: Promise<void>[] = []
  const total = Math.ceil((perSecond * setup.seconds) / setup.kind.size)
  const one = async (n: number, due: number) => {
    const process = n % setup.ports.length
    const wire = free[process]?.pop() ?? (await openWire(setup.ports[process] ?? 0))
    await log.live(wire, due, () => free[process]?.push(wire))
  }
  for (let sent = 0; sent < total; ) {
    const now = performance.now() - log.begun
    for (; sent < total; sent += 1) {
      const due = (sent * setup.kind.size * 1_000) / perSecond
      if (due > now) break
      under.push(one(sent, log.begun + due))
    }
    await sleep(turnMs)
  }
  await Promise.all(under)
  for (const wire of free.flat()) wire.close()
  return log.result()
}

const turnMs = 2

/** Payments that never settle must end the bench with words. */
const patienceMs = 120_000

/** Follows lives from the request to the event. */
class LifeLog {
  readonly begun = performance.now()
  readonly #setup: LifeSetup
  readonly #answered: number[] = []
  readonly #settled: number[] = []
  #last = this.begun

  constructor(setup: LifeSetup) {
    this.#setup = setup
  }

  /** One life. @param onAnswered called once the connection is free again */
  async live(wire: Wire, due: number, onAnswered?: () => void): Promise<void> {
    const { kind, tokens, feed } = this.#setup
    names += 1
    const key = await kind.begin(wire, tokens[names % tokens.length] ?? '', `life-${process.pid}-${names}`)
    this.#answered.push(performance.now() - due)
    onAnswered?.()
    const seen = await Promise.race([feed.seen(key), givesUp(key)])
    this.#settled.push(seen - due)
    this.#last = Math.max(this.#last, seen)
  }

  result(): Lives {
    const count = this.#settled.length * this.#setup.kind.size
    const of = (times: readonly number[]) => ({ p50: quantile(times, 0.5), p99: quantile(times, 0.99) })
    return {
      count,
      perSecond: (count * 1_000) / (this.#last - this.begun),
      answered: of(this.#answered),
      settled: of(this.#settled),
    }
  }
}

/** Names are never used twice, so that turns on one database do not meet. */
let names = 0

async function givesUp(key: string): Promise<never> {
  await sleep(patienceMs, undefined, { ref: false })
  throw new Error(`${key} was not settled within ${patienceMs / 1_000} s.`)
}
