import { type CrashMutant, mutants, mutatedTree } from './mutants.ts'
import { crashOnce, type CrashRun } from './crash-run.ts'
import { UsageError } from '../kit/command-line.ts'

/** What became of a planted bug. */
export interface FoundMutant {
  mutant: CrashMutant
  /** The storm that saw it; null where none did. */
  run: CrashRun | null
  cycles: number
  ms: number
}

/** By every fourth seed two processes of the service share the database: of a run of four storms in one. */
export const processesOf = (seed: number): number => (seed % 4 === 0 ? 2 : 1)

/** Storms per bug, and cycles per storm. */
const seedsMax = 3
const cyclesMax = 20

/**
 * Plants each bug in a copy of the sources and storms it until something is seen.
 * @param names which ones; all of them where none is named
 */
export function namedMutants(names: readonly string[]): readonly CrashMutant[] {
  const unknown = names.filter((name) => !mutants.some((mutant) => mutant.name === name))
  if (unknown.length > 0)
    throw new UsageError(
      `no such bug: ${unknown.join(', ')}; there are: ${mutants.map(({ name }) => name).join('; ')}`,
    )
  return names.length === 0 ? mutants : mutants.filter(({ name }) => names.includes(name))
}

export async function findMutant(
  mutant: CrashMutant,
  options: { root: string; seed: number; signal: AbortSignal; say(line: string): void },
): Promise<FoundMutant> {
  const begun = performance.now()
  const { tree, remove } = mutatedTree(options.root, mutant)
  let cycles = 0
  try {
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
      if (run.violations.length > 0) return { mutant, run, cycles, ms: performance.now() - begun }
    }
    return { mutant, run: null, cycles, ms: performance.now() - begun }
  } finally {
    remove()
  }
}
