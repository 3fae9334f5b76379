import fc from 'fast-check'
import { seedsOf } from '../kit/seeds.ts'
import { strength } from '../kit/strength.ts'

/** The place of a failure among the runs of the seed. */
const replay = process.env.REPLAY

/**
 * The number of runs: `RUNS` where it is given, else `long` in `npm run soak` and a fifth of it
 * elsewhere.
 */
export function runsOf(long: number): number {
  return Number(process.env.RUNS ?? strength(Math.ceil(long / 5), long))
}

/** The number of runs at the same time: `usual`, or 1 for a replay. */
export function nodesOf(usual: number): number {
  return replay === undefined ? usual : 1
}

/**
 * Checks a property under each seed of a search; where it fails, the error names the command that replays the
 * failure.
 * @param options.node the number of this environment: each draws other histories
 * @throws Error with the smallest case found
 */
export async function checkProperty<T>(
  property: fc.IAsyncPropertyWithHooks<T>,
  options: { search: string; runs: number; node?: number },
): Promise<void> {
  for (const seed of seedsOf(options.search)) {
    const details = await fc.check(property, {
      seed: seed + (options.node ?? 0),
      numRuns: options.runs,
      // Long runs from the first run on.
      unbiased: true,
      ...(replay !== undefined && { path: replay }),
    })
    if (!details.failed) continue
    const words = fc.defaultReportMessage(details) ?? 'interrupted'
    // The path of the run itself, not of its shrunk form: commands shrink by their effects.
    const path = details.counterexamplePath?.split(':')[0] ?? '0'
    throw new Error(`replay: SEED=${details.seed} REPLAY=${path}\n${words}`, { cause: details.errorInstance })
  }
}
