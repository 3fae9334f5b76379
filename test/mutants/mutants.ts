import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { UsageError } from '../kit/command-line.ts'
import type { Mutant } from './mutant.ts'
import { readTable } from './read-table.ts'

/** Every planted bug: the rows of `table/*.diff`. */
export const mutants: readonly Mutant[] = globSync('table/*.diff', { cwd: import.meta.dirname })
  .toSorted()
  .flatMap((file) => readTable(readFileSync(join(import.meta.dirname, file), 'utf8')))

/**
 * Chooses bugs: those whose name, files or test hold one of the words; all where there is no word.
 * @throws UsageError where a word chooses nothing
 */
export function chooseMutants<T extends Mutant>(all: readonly T[], words: readonly string[]): readonly T[] {
  const holds = ({ name, test, edits }: Mutant, word: string) =>
    [name, test?.file ?? '', ...edits.map(({ file }) => file)].some((text) => text.includes(word))
  const unknown = words.filter((word) => !all.some((mutant) => holds(mutant, word)))
  if (unknown.length > 0)
    throw new UsageError(
      `no bug that this command plants is named like ${unknown.join(', ')}; see npm run mutants -- --list`,
    )
  return all.filter((mutant) => words.length === 0 || words.some((word) => holds(mutant, word)))
}
