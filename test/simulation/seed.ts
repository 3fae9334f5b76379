import fc from 'fast-check'
import { strength } from '../kit/strength.ts'

const given = process.env.SEED === undefined ? null : Number(process.env.SEED)
/** Where among the runs of the seed a failure stood. */
const replay = process.env.REPLAY

/** What the run begins with: `SEED`, or another one each time. */
export const seed = given ?? Date.now() % 1_000_000_000

/** How often: by `RUNS` where it is given, else a fifth of `long` outside of `npm run test:long`. */
export function runsOf(long: number): number {
  return Number(process.env.RUNS ?? strength(Math.ceil(long / 5), long))
}

/** How many run at the same time: `usual`, but for a replay. */
export function nodesOf(usual: number): number {
  return replay === undefined ? usual : 1
}

/**
 * Checks a property; where it fails, says how to see that again.
 * @throws Error with the smallest case found, and the command that replays it
 */
export async function prove<T>(
  property: fc.IAsyncPropertyWithHooks<T>,
  options: { runs: number; seed: number },
): Promise<void> {
  const parameters: fc.Parameters<T> = {
    seed: options.seed,
    numRuns: options.runs,
    // Long runs from the first one on.
    unbiased: true,
    ...(replay !== undefined && { path: replay }),
  }
  const details = await fc.check(property, parameters)
  if (!details.failed) return
  const words = fc.defaultReportMessage(details) ?? 'interrupted'
  // The run itself, not what it shrank to: commands shrink by what they did.
  const path = details.counterexamplePath?.split(':')[0] ?? '0'
  throw new Error(`replay: SEED=${options.seed} REPLAY=${path}\n${words}`, { cause: details.errorInstance })
}
