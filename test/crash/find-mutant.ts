import type { Mutant } from '../mutants/mutant.ts'
import { copyTree, plant } from '../mutants/plant.ts'
import { crashOnce, type CrashRun } from './crash-run.ts'

/** The result for one planted bug. */
export interface FoundMutant {
  mutant: Mutant
  /** The run that found it; null where none did. */
  run: CrashRun | null
  /** Sentences of runs that did not come back or did not end, which says nothing about the bug. */
  stuck: string[]
  cycles: number
  ms: number
}

/**
 * Every fourth seed runs two processes of the service over one database: one run of four, and the run of
 * `npm test`, whose seed is one of them (`test/kit/seeds.ts`).
 */
export const processesOf = (seed: number): number => (seed % 4 === 0 ? 2 : 1)

/** Runs per bug, and cycles per run. */
const seedsMax = 3
const cyclesMax = 20

export async function findMutant(
  mutant: Mutant,
  options: { root: string; seed: number; signal: AbortSignal; say(line: string): void },
): Promise<FoundMutant> {
  const begun = performance.now()
  const { tree, remove } = copyTree(options.root, ['src', 'prisma', 'test/crash', 'package.json'])
  let cycles = 0
  const stuck: string[] = []
  try {
    plant(tree, mutant)
    for (let count = 0; count < seedsMax; count += 1) {
      const say = (line: string) => options.say(`${mutant.name}: ${line}`)
      const run = await crashOnce({
        seed: options.seed + count,
        processes: processesOf(options.seed + count),
        cycles: cyclesMax,
        tree,
        checkEvery: 1,
        signal: options.signal,
        say,
      })
      cycles += run.cycles
      // A service that does not come back in time says nothing about the bug: the machine may be busy.
      if (run.violations.length > 0) return { mutant, run, stuck, cycles, ms: performance.now() - begun }
      if (run.stuck !== null) stuck.push(run.stuck)
    }
    return { mutant, run: null, stuck, cycles, ms: performance.now() - begun }
  } finally {
    remove()
  }
}
