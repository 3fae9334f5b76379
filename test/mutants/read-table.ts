import type { Edit, Mutant } from './mutant.ts'

/** The lines of a row, in their order. */
const rowForm = new RegExp(
  '^bug: (?<name>.+)\n' +
    '(?:found by: (?<file>\\S+\\.ts): (?<title>.+)\n)?' +
    '(?<crashes>found by: the crash harness\n)?' +
    '(?:as in: (?<other>.+)\n)?' +
    '(?<places>(?:in: .+\n-.*\n(?:[-+].*\n)*)*)$',
)

/**
 * Reads the rows of a table, which empty lines separate:
 *
 *     bug: the fault in words
 *     found by: ledger/payouts.test.ts: a part of the name of a test
 *     found by: the crash harness
 *     as in: a bug above, whose edits come first
 *     in: settle_many()
 *     - a text that occurs once in that file
 *     + the text that replaces it
 *
 * @throws Error where a row has another form
 */
export function readTable(text: string): Mutant[] {
  const rows: Mutant[] = []
  // A comment is no part of a row, and a line with an indent goes on with the line before.
  const lines = text.replaceAll(/^#.*\n/gm, '').replaceAll(/\n +(?=\S)/g, ' ')
  for (const row of lines.split(/\n{2,}/)) if (row.trim()) rows.push(readRow(`${row.trim()}\n`, rows))
  return rows
}

function readRow(text: string, above: readonly Mutant[]): Mutant {
  const { name, file, title, crashes, other, places = '' } = rowForm.exec(text)?.groups ?? {}
  const base = above.find((row) => row.name === other)
  if (!name || (other && !base)) throw new Error(`a planted bug is not written as a row is: ${text}`)
  return {
    name,
    edits: [...(base?.edits ?? []), ...places.split(/^in: /m).flatMap(readEdits)],
    test: file && title ? { file, name: title } : null,
    isFoundByCrashes: crashes !== undefined,
  }
}

/** @param place the name of a file, and below it the lines that go and those that come in their place */
function readEdits(place: string): Edit[] {
  const [file = ''] = place.split('\n', 1)
  const unmarked = (lines: string) => lines.slice(0, -1).replaceAll(/^[-+] ?/gm, '')
  const edits = place.matchAll(/((?:^-.*\n)+)((?:^\+.*\n)*)/gm)
  return Array.from(edits, ([, find = '', replace = '']) => ({
    file,
    find: unmarked(find),
    replace: unmarked(replace),
  }))
}
