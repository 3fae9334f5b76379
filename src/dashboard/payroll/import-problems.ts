import { isolate } from '../format.ts'
import type { ImportProblem } from './import-file.ts'
import type { PayrollWords } from './fr.ts'

/** The problems of one line, or of the file as a whole. */
export interface LineProblems {
  /** The number that a spreadsheet shows beside the line; null for the file. */
  line: number | null
  /** The content of the line, as the service read it. */
  content: string
  /** Each problem in words. */
  texts: readonly string[]
}

type ProblemWords = PayrollWords['problems']

// The service writes problems for programmers, in English. These are its words by what they mean.
const meanings: readonly [words: RegExp, meaning: keyof ProblemWords['reasons']][] = [
  [/^is required: the number suggests/, 'noOperator'],
  [/^is required|^must not be empty/, 'missing'],
  [/^must be a mobile number/, 'number'],
  [/^must be whole francs|^must be a number|^must be a whole/, 'whole'],
  [/^must be at least/, 'small'],
  [/^must be at most \d+ XOF/, 'large'],
  [/^must be one of|operator that this service is not set up for|^BankTransfer/, 'operator'],
  [/^must be XOF/, 'currency'],
  [/formula/, 'formula'],
  [/^is a date/, 'date'],
  [/hidden (line|column)/, 'hidden'],
  [/format of its cell/, 'format'],
  [/conditional format/, 'conditional'],
  [/colour of its background/, 'colour'],
  [/struck out/, 'struck'],
  [/more fields than titles/, 'fields'],
  [/merged cells/, 'merged'],
  [/error of the spreadsheet/, 'error'],
  [/hidden characters/, 'invisible'],
  [/longer than|at most \d+ characters/, 'long'],
  [/is not UTF-8/, 'letters'],
  [/quotation mark/, 'quotation'],
  [/has no recipients/, 'empty'],
  [/recipients: send it in parts/, 'tooMany'],
  [/old Excel file|OpenDocument|XLSB|not a table|web page|not an XLSX|archive/, 'kind'],
  [/tables in the sheets/, 'sheets'],
]

/** Writes a problem for a person. */
function problemText(
  { field, message }: ImportProblem,
  { reasons, columns, ...words }: ProblemWords,
): string {
  const [, missing] = /^has no column (\w+)/.exec(message) ?? []
  if (missing !== undefined) return words.noColumn(columnOf(missing, columns))
  const [, first, second] = /^has two columns with the same meaning: (.+) and (.+)$/s.exec(message) ?? []
  if (first !== undefined && second !== undefined) return words.twoColumns(first, second)
  const [, unread] = /^has a column that was not read: (.+) \(column \w+\)$/s.exec(message) ?? []
  if (unread !== undefined) return words.unread(unread)
  const meaning = meanings.find(([pattern]) => pattern.test(message))?.[1] ?? 'other'
  const [, column] = field === 'title' ? [field, field] : (/^lines\[\d+\]\.(\w+)$/.exec(field) ?? [])
  return column === undefined ? reasons[meaning] : words.inColumn(columnOf(column, columns), reasons[meaning])
}

function columnOf(name: string, columns: ProblemWords['columns']): string {
  return columns[name as keyof typeof columns] ?? name
}

/** Groups the problems of a file by their lines, in the order of the file. */
export function problemsByLine(
  problems: readonly ImportProblem[],
  words: PayrollWords,
): readonly LineProblems[] {
  const groups = new Map<number | null, ImportProblem[]>()
  for (const problem of problems) {
    const [, number] = /^lines\[(\d+)\]/.exec(problem.field) ?? []
    const line = number === undefined ? null : Number(number)
    groups.set(line, [...(groups.get(line) ?? []), problem])
  }
  return [...groups].map(([line, found]) => ({
    line,
    content: Object.values(found[0]?.row ?? {})
      .map(isolate)
      .join(' · '),
    texts: [...new Set(found.map((problem) => problemText(problem, words.problems)))],
  }))
}
