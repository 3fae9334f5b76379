import { randomFrom } from '../kit/random.ts'

/** The process that is killed; `both` are killed at one moment. */
export type Victim = 'service' | 'postgres' | 'both'

/** One kill: its moment, and whether database connections are reset until then. */
export interface PlannedKill {
  victim: Victim
  /** The number of a process of the service, or `all` processes at one moment. */
  process: number | 'all'
  /** `starting`: the time runs from the start of the process, so that it may die before it serves. */
  moment: 'starting' | 'serving'
  afterMs: number
  /**
   * On a slow machine the kill waits for so many answers, but no longer than three times its planned time.
   */
  answersMin: number
  resets: boolean
}

/**
 * Plans the kills of a run, the same for the same seed. Times differ: most kills come in the middle of work;
 * a quarter come later than every timeout of the service (see `short-limits.ts`), so that errors of timeouts
 * show.
 */
export function planOf(seed: number, cycles: number): readonly PlannedKill[] {
  const random = randomFrom(seed)
  const between = (least: number, most: number) => Math.round(least + (most - least) * random())
  return Array.from({ length: cycles }, (): PlannedKill => {
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

/** Picks a value by weight. */
export function pick<T>(random: () => number, choices: readonly { value: T; weight: number }[]): T {
  let at = random() * choices.reduce((sum, { weight }) => sum + weight, 0)
  for (const { value, weight } of choices) {
    at -= weight
    if (at < 0) return value
  }
  throw new Error('There is nothing to pick from.')
}
