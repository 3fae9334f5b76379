/** What is killed; `both` at one moment. */
export type Victim = 'service' | 'postgres' | 'both'

/** One kill: when, and what happens to the database's connections until then. */
export interface Blow {
  victim: Victim
  /** Which process of the service; where there are several, `all` at one moment. */
  process: number | 'all'
  /** `starting`: the time runs from the start of the process, so that it may die before it serves. */
  moment: 'starting' | 'serving'
  afterMs: number
  /** A life on a slow machine lasts until so many requests were answered in it, or three times as long. */
  answersMin: number
  resets: boolean
}

/** Numbers from 0 to 1 that a seed decides (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/**
 * The kills of a run, the same for the same seed. Lives are mixed: most end in the middle of what they do, a
 * quarter outlast every timeout of the service (see `short-limits.ts`), or what a timeout does wrong would
 * never be seen.
 */
export function planOf(seed: number, cycles: number): readonly Blow[] {
  const random = randomFrom(seed)
  const between = (least: number, most: number) => Math.round(least + (most - least) * random())
  return Array.from({ length: cycles }, (): Blow => {
    const victim = pick(random, victims)
    const process = random() < 0.3 ? 'all' : between(0, 1)
    const starting = victim === 'service' && random() < 0.15
    const afterMs = starting
      ? between(100, 900)
      : random() < 0.75
        ? between(200, 1_100)
        : between(4_200, 5_200)
    const moment = starting ? 'starting' : 'serving'
    return { victim, process, moment, afterMs, answersMin: between(5, 60), resets: random() < 0.6 }
  })
}

const victims = [
  { value: 'service', weight: 55 },
  { value: 'postgres', weight: 25 },
  { value: 'both', weight: 20 },
] as const

/** Picks by weight. */
export function pick<T>(random: () => number, choices: readonly { value: T; weight: number }[]): T {
  let at = random() * choices.reduce((sum, { weight }) => sum + weight, 0)
  for (const { value, weight } of choices) {
    at -= weight
    if (at < 0) return value
  }
  throw new Error('There is nothing to pick from.')
}
