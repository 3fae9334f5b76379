import type { FieldProblem } from '../../shared/errors.ts'
import { invalidInput, snakeCase } from '../../shared/input.ts'
import { limits } from '../../shared/limits.ts'
import { typedText } from '../csv.ts'
import { type TableCell, fileProblem, type TableRow, type Unusable } from './row.ts'

/** The recipients as the table has them, not yet checked, with their places in the table. */
export interface Listed {
  recipients: readonly Recipient[]
  /**
   * Names a problem by its line and column in the table, and shows the line: `recipients[3].amount` →
   * `lines[7].amount`.
   */
  locate: (problem: FieldProblem) => FieldProblem
  /** The columns that were not read: a person may have meant one of them. */
  warnings: readonly FieldProblem[]
}

/**
 * A recipient of the table. The later check of a field refuses an `Unusable` value with the words of the
 * value.
 */
type Recipient = Partial<Record<Field, TableCell>>

/**
 * The columns that are read, under their REST names, with the titles that they may have: accents and case do
 * not matter, and a space or a hyphen counts as `_`.
 */
const titles = {
  name: ['name', 'nom'],
  account: ['account', 'phone', 'numero', 'telephone'],
  amount: ['amount', 'montant'],
  currency: ['currency', 'devise'],
  payment_method: ['payment_method', 'operator', 'operateur'],
} as const
type Field = keyof typeof titles
const fields = Object.keys(titles) as Field[]
const optional: ReadonlySet<Field> = new Set(['currency', 'payment_method'])

interface Column {
  at: number
  /** The title of the column in the first line of the table. */
  title: string
}

/** The columns that are read, the others, and the indexes of all columns with a title. */
interface Head {
  columns: ReadonlyMap<Field, Column>
  unread: readonly Column[]
  titled: ReadonlySet<number>
}

/**
 * Reads a table of recipients. Its content decides whether it is CSV or XLSX, not its name or type.
 * @throws DomainError INVALID_INPUT where it is no such table; problems of single recipients are not checked
 *   here
 */
export async function readRecipients(file: Buffer): Promise<Listed> {
  let head: Head | null = null
  const recipients: Recipient[] = []
  const lines: number[] = []
  for await (const row of await rowsOf(file)) {
    if (!head) {
      head = readHead(row)
      continue
    }
    if (recipients.length === limits.batchRecipientsMax) {
      throw fileProblem(`has more than ${limits.batchRecipientsMax} recipients: send it in parts`)
    }
    recipients.push(recipientOf(row, head))
    lines.push(row.line)
  }
  if (recipients.length === 0) {
    throw fileProblem('has no recipients: its first line names the columns, then one line for each')
  }
  const warnings = head ? warningsOf(head) : []
  return { recipients, warnings, locate: (problem) => locate(problem, { recipients, lines, head }) }
}

/**
 * Reads the rows of the file. The readers are loaded at their first use, because few processes ever read a
 * file.
 */
async function rowsOf(file: Buffer): Promise<AsyncIterable<TableRow>> {
  const signature = file.toString('latin1', 0, 4)
  // A file that Excel protects with a password has this signature too.
  if (signature === '\xd0\xcf\x11\xe0') {
    throw fileProblem('is an old Excel file, or has a password: save it as XLSX or CSV, without one')
  }
  if (signature === 'PK\x03\x04') return (await import('./xlsx.ts')).xlsxRows(file)
  return (await import('./csv.ts')).csvRows(file)
}

/**
 * Reads the titles of the columns.
 * @throws DomainError INVALID_INPUT that names the columns that are missing or occur twice
 */
function readHead({ cells }: TableRow): Head {
  const columns = new Map<Field, Column>()
  const unread: Column[] = []
  const problems: string[] = []
  for (const [at, cell] of cells.entries()) {
    // A title that a person does not see counts: the cells below it are refused, with their places.
    const words = typeof cell === 'object' ? cell.text : cell
    const title = typeof words === 'string' ? words.trim() : ''
    const field = fields.find((each) => (titles[each] as readonly string[]).includes(plain(title)))
    const first = field && columns.get(field)
    if (first) problems.push(`has two columns with the same meaning: ${first.title} and ${title}`)
    else if (field) columns.set(field, { at, title })
    else if (title !== '') unread.push({ at, title })
  }
  for (const field of fields) {
    if (columns.has(field) || optional.has(field)) continue
    problems.push(`has no column ${titles[field].join(' or ')} in its first line`)
  }
  if (problems.length > 0) throw invalidInput(problems.map((message) => ({ field: 'file', message })))
  return { columns, unread, titled: new Set(cells.flatMap((cell, at) => (hasContent(cell) ? [at] : []))) }
}

function hasContent(cell: TableCell | undefined): boolean {
  return typeof cell === 'object' || String(cell ?? '').trim() !== ''
}

/** Returns a title in plain letters: `Numéro ` → `numero`, `Payment method` → `payment_method`. */
function plain(title: string): string {
  return title
    .normalize('NFD')
    .replaceAll(/\p{M}/gu, '')
    .toLowerCase()
    .replaceAll(/[\s-]+/g, '_')
}

/** Choice: the first columns that are not read show what happened; a table may have hundreds. */
const unreadShownMax = 10

function warningsOf({ unread }: Head): FieldProblem[] {
  return unread.slice(0, unreadShownMax).map(({ at, title }) => ({
    field: 'file',
    message: `has a column that was not read: ${title.slice(0, titleLengthMax)} (column ${letterOf(at)})`,
  }))
}

const titleLengthMax = 100

function recipientOf({ cells, unusable }: TableRow, { columns, titled }: Head): Recipient {
  const recipient: Recipient = {}
  for (const [field, { at }] of columns) {
    const cell = cells[at]
    if (cell === undefined || !hasContent(cell)) continue
    recipient[field] = typeof cell === 'object' ? cell : readers[field](cell)
  }
  const amount = cells[columns.get('amount')?.at ?? -1]
  const written = typeof amount === 'string' || typeof amount === 'number' ? { text: String(amount) } : {}
  if (unusable !== null) recipient.amount = { unusable, ...written }
  else if (cells.some((cell, at) => !titled.has(at) && hasContent(cell))) {
    // Without quotation marks `1,500` is two fields, and the first one is a wrong amount.
    recipient.amount = {
      unusable: 'is in a line with more fields than titles: delete what has no title',
      ...written,
    }
  }
  return recipient
}

const readers: Readonly<Record<Field, (cell: string | number) => TableCell>> = {
  name: oneText,
  // Excel turns digits into a number; a mobile number has neither a sign nor a fraction.
  account: (cell) =>
    typeof cell === 'number' && !/^\d+$/.test(String(cell))
      ? { unusable: 'must be a mobile number in Mali', text: String(cell) }
      : oneText(cell),
  amount: (cell) => (typeof cell === 'number' ? cell : amountOf(cell)),
  currency: (cell) => (/^(?:F ?CFA|CFA|F)$/i.test(oneText(cell)) ? 'XOF' : oneText(cell)),
  payment_method: oneText,
}

function oneText(cell: string | number): string {
  return typedText(String(cell)).trim()
}

/**
 * Reads an amount: `5000`, `5 000` and `5 000 F CFA`. Any other form could be misunderstood and is refused.
 */
function amountOf(text: string): number | Unusable {
  const [, digits] =
    /^(\d{1,15}|\d{1,3}(?: \d{3}){1,4})(?: ?(?:F ?CFA|XOF|CFA|F))?$/i.exec(
      text.trim().replaceAll(/\s/g, ' '),
    ) ?? []
  if (digits !== undefined) return Number(digits.replaceAll(' ', ''))
  return { unusable: 'must be whole francs, such as 5000 or 5 000 F CFA, without a comma or a point', text }
}

interface Table {
  recipients: readonly Recipient[]
  lines: readonly number[]
  head: Head | null
}

function locate({ field, message: words }: FieldProblem, { recipients, lines, head }: Table): FieldProblem {
  const message = words.replaceAll(/recipients\[(\d+)\]/g, (_all, index) => `lines[${lines[Number(index)]}]`)
  const [, index, name] = /^recipients\[(\d+)\](?:\.(\w+))?$/.exec(field) ?? []
  if (index === undefined) return { field: field === 'recipients' ? 'file' : field, message }
  const line = `lines[${lines[Number(index)]}]`
  const row = rowOf(recipients[Number(index)] ?? {})
  if (name === undefined) return { field: line, message, row }
  const title = snakeCase(name) as Field
  const value = recipients[Number(index)]?.[title]
  const reason = typeof value === 'object' ? value.unusable : message
  const column = head?.columns.get(title)
  const where = column ? ` (column ${letterOf(column.at)}, ${column.title})` : ''
  return { field: `${line}.${title}`, message: `${reason}${where}`, row }
}

/** Choice: a person recognizes the line by it; a refusal shows up to a hundred lines. */
const cellShownMax = 100

/** Returns the texts of a line that were read. */
function rowOf(recipient: Recipient): Record<string, string> {
  const texts = Object.entries(recipient).flatMap(([field, cell]): [string, string][] => {
    const text = typeof cell === 'object' ? cell.text : String(cell)
    return text === undefined ? [] : [[field, text.trim().slice(0, cellShownMax).toWellFormed()]]
  })
  return Object.fromEntries(texts)
}

/** Returns the name of a column in a spreadsheet: 0 → A, 26 → AA. */
function letterOf(column: number): string {
  const before = column < 26 ? '' : letterOf(Math.floor(column / 26) - 1)
  return before + String.fromCharCode(65 + (column % 26))
}
