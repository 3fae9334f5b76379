import { DomainError } from '../../shared/errors.ts'
import { fileProblem, type TableRow } from './row.ts'
import { readBook, type Sheet, textListener } from './xlsx-book.ts'
import { openParts, type Parts } from './xlsx-parts.ts'
import { sheetListener } from './xlsx-sheet.ts'
import { type Effort, readXml } from './xml.ts'

/**
 * Reads the lines of the visible sheet that holds a table. It computes no formula: a cell with a formula is
 * unusable, even where the file has its last result. If that result is an empty text, the cell counts as
 * empty. What a person who looks at the sheet does not see is unusable too.
 * @throws DomainError INVALID_INPUT that names the file, or a line
 */
export async function* xlsxRows(file: Buffer): AsyncGenerator<TableRow, void> {
  try {
    const parts = await openParts(file)
    const effort = { usedMs: 0, marks: 0 }
    const book = await readBook(parts, effort)
    const sheet = parts((await chooseSheet(parts, book.sheets, effort)).path)
    if (!sheet) throw new Error('no sheet')
    const rows: TableRow[] = []
    for await (const _ of readXml(sheet, sheetListener(rows, book), effort)) yield* rows.splice(0)
  } catch (error) {
    // The file comes from a client: any error in it is no error of the service.
    if (error instanceof DomainError) throw error
    throw fileProblem('is not an XLSX workbook, or is damaged: save it again')
  }
}

/**
 * Chooses the sheet to read: the only one that holds a table, or else the first.
 * @throws DomainError INVALID_INPUT that names two sheets with a table: one of them may be last month's
 */
async function chooseSheet(parts: Parts, sheets: readonly Sheet[], effort: Effort): Promise<Sheet> {
  const [first] = sheets
  if (!first) throw new Error('no sheet')
  if (sheets.length === 1) return first
  let chosen: Sheet | null = null
  for (const sheet of sheets) {
    if (!(await holdsTable(parts, sheet, effort))) continue
    if (chosen) {
      const names = [chosen, sheet].map(({ name }) => JSON.stringify(name.slice(0, sheetNameLengthMax)))
      throw fileProblem(
        `has tables in the sheets ${names.join(' and ')}: keep one of them, or hide the other`,
      )
    }
    chosen = sheet
  }
  return chosen ?? first
}

/** The longest name that a spreadsheet gives to a sheet. */
const sheetNameLengthMax = 31

/**
 * Whether a sheet holds more than notes. Choice: two lines with three contents each are a table, under any
 * titles; a result of a formula counts as a content.
 */
async function holdsTable(parts: Parts, { path }: Sheet, effort: Effort): Promise<boolean> {
  let contents = 0
  let lines = 0
  const heard = textListener()
  const listener = {
    ...heard.listener,
    close(name: string) {
      heard.listener.close(name)
      if (name === 'c' && heard.take().trim() !== '') contents += 1
      if (name !== 'row') return
      if (contents >= 3) lines += 1
      contents = 0
    },
  }
  const sheet = parts(path)
  if (!sheet) return false
  for await (const _ of readXml(sheet, listener, effort)) if (lines >= 2) return true
  return false
}
