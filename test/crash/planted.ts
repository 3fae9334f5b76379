import { type Plant, plants, plantTree } from './plants.ts'
import { runStorm, type Storm } from './storm.ts'
import { UsageError } from '../kit/command-line.ts'

/** What became of a planted bug. */
export interface Found {
  plant: Plant
  /** The storm that saw it; null where none did. */
  storm: Storm | null
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
export function namedPlants(names: readonly string[]): readonly Plant[] {
  const unknown = names.filter((name) => !plants.some((plant) => plant.name === name))
  if (unknown.length > 0)
    throw new UsageError(
      `no such bug: ${unknown.join(', ')}; there are: ${plants.map(({ name }) => name).join('; ')}`,
    )
  return names.length === 0 ? plants : plants.filter(({ name }) => names.includes(name))
}

export async function findPlanted(
  plant: Plant,
  options: { root: string; seed: number; signal: AbortSignal; say(line: string): void },
): Promise<Found> {
  const begun = performance.now()
  const { tree, remove } = plantTree(options.root, plant)
  let cycles = 0
  try {
    for (let count = 0; count < seedsMax; count += 1) {
      const say = (line: string) => options.say(`${plant.name}: ${line}`)
      const storm = await runStorm({
        seed: options.seed + count,
        processes: processesOf(options.seed + count),
        cycles: cyclesMax,
        tree,
        checkEvery: 1,
        signal: options.signal,
        say,
      })
      cycles += storm.cycles
      if (storm.violations.length > 0) return { plant, storm, cycles, ms: performance.now() - begun }
    }
    return { plant, storm: null, cycles, ms: performance.now() - begun }
  } finally {
    remove()
  }
}
