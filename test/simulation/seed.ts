import fc from 'fast-check'
import { strength } from '../kit/strength.ts'

const given = process.env.SEED === undefined ? null : Number(process.env.SEED)
/** The place of a failure among the runs of the seed. */
const replay = process.env.REPLAY

/** The seed of the run: `SEED`, or another one each time. */
export const seed = given ?? Date.now() % 1_000_000_000

/**
 * The number of runs: `RUNS` where it is given, else `long` in `npm run test:long` and a fifth of it
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
 * Checks a property; where it fails, the error names the command that replays the failure.
 * @throws Error with the smallest case found
 */
export async function checkProperty<T>(
  property: fc.IAsyncPropertyWithHooks<T>,
  options: { runs: number; seed: number },
): Promise<void> {
  const parameters: fc.Parameters<T> = {
    seed: options.seed,
    numRuns: options.runs,
    // Long runs from the first run on.
    unbiased: true,
    ...(replay !== undefined && { path: replay }),
  }
  const details = await fc.check(property, parameters)
  if (!details.failed) return
  const words = fc.defaultReportMessage(details) ?? 'interrupted'
  // The path of the run itself, not of its shrunk form: commands shrink by their effects.
  const path = details.counterexamplePath?.split(':')[0] ?? '0'
  throw new Error(`replay: SEED=${options.seed} REPLAY=${path}\n${words}`, { cause: details.errorInstance })
}
