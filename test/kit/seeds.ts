import { regressions } from './regressions.ts'
import { isSoak } from './strength.ts'

const given = process.env['SEED']

/** The seed of `npm test`, the same in every run, of this tree and of the next. */
const constantSeed = 20_261_128

/** The seed of all random choices: `npm run soak` gives each file another one, and `SEED` replays any. */
export const seed = Number(given ?? (isSoak ? Date.now() % 1_000_000_000 : constantSeed))

/** The seeds that a search plays: in `npm test` also those under which it once found a fault. */
export function seedsOf(search: string): readonly number[] {
  const found: Record<string, readonly number[] | undefined> = regressions
  return given === undefined && !isSoak ? [seed, ...(found[search] ?? [])] : [seed]
}
