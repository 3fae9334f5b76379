import { DomainError } from '../../shared/errors.ts'
import { importBounds } from './bounds.ts'
import { type TableCell, fileProblem, type TableRow } from './row.ts'
import { openParts, type Parts } from './xlsx-parts.ts'
import { type Effort, hearXml, type Listener, readXml } from './xml.ts'

/**
 * Reads the lines of the first visible sheet of a workbook. It computes no formula: a cell with a formula is
 * unusable, even where the file has its last result. If that result is an empty text, the cell counts as
 * empty.
 * @throws DomainError INVALID_INPUT that names the file
 */
export async function* xlsxRows(file: Buffer): AsyncGenerator<TableRow, void> {
  try {
    const parts = await openParts(file)
    const effort = { usedMs: 0, marks: 0 }
    const path = await findSheet(parts, effort)
    const book = { texts: await readTexts(parts, effort), dateStyles: await readDateStyles(parts, effort) }
    const sheet = parts(path)
    if (!sheet) throw new Error('no sheet')
    const rows: TableRow[] = []
    for await (const _ of readXml(sheet, sheetListener(rows, book), effort)) yield* rows.splice(0)
  } catch (error) {
    // The file comes from a client: any error in it is no error of the service.
    if (error instanceof DomainError) throw error
    throw fileProblem('is not an XLSX workbook, or is damaged: save it again')
  }
}

/** The parts of a workbook to which the cells of all sheets refer. */
interface Book {
  texts: readonly string[]
  dateStyles: ReadonlySet<number>
}

async function findSheet(parts: Parts, effort: Effort): Promise<string> {
  const sheets: { id: string | undefined; isShown: boolean }[] = []
  const targets = new Map<string, string>()
  const workbook = parts('xl/workbook.xml')
  const relations = parts('xl/_rels/workbook.xml.rels')
  if (!workbook || !relations) throw new Error('no workbook')
  const heardOfBook: Listener = {
    open(name, attributes) {
      if (name !== 'sheet') return
      const [, id] = Object.entries(attributes).find(([key]) => key.endsWith(':id')) ?? []
      sheets.push({ id, isShown: (attributes['state'] ?? 'visible') === 'visible' })
    },
  }
  await hearXml(workbook, heardOfBook, effort)
  const heardOfRelations: Listener = {
    open(name, { Id, Target }) {
      if (name === 'Relationship' && Id !== undefined && Target !== undefined) targets.set(Id, Target)
    },
  }
  await hearXml(relations, heardOfRelations, effort)
  const target = targets.get(sheets.find(({ isShown }) => isShown)?.id ?? '')
  if (target === undefined) throw new Error('no sheet')
  return new URL(target, 'file:///xl/').pathname.slice(1)
}

/** Reads the texts that the cells of a workbook share, by their numbers. */
async function readTexts(parts: Parts, effort: Effort): Promise<string[]> {
  const texts: string[] = []
  const shared = parts('xl/sharedStrings.xml')
  if (!shared) return texts
  const heard = textListener()
  const listener: Listener = {
    ...heard.listener,
    close(name) {
      heard.listener.close(name)
      if (name !== 'si') return
      if (texts.length === importBounds.textsMax) throw tooMany(importBounds.textsMax, 'shared texts')
      texts.push(heard.take())
    },
  }
  await hearXml(shared, listener, effort)
  return texts
}

function tooMany(max: number, what: string): DomainError {
  return fileProblem(`has more than ${max} ${what}: keep only the table in it`)
}

/** Makes a listener that gathers the text of `t` and `v`, without the phonetic text of a word. */
function textListener() {
  let text = ''
  let isHeard = false
  let isPhonetic = false
  return {
    listener: {
      open(name: string) {
        if (name === 'rPh') isPhonetic = true
        isHeard = (name === 't' || name === 'v') && !isPhonetic
      },
      text: (part: string) => {
        if (isHeard && text.length < importBounds.textLengthMax) text += part
      },
      close(name: string) {
        if (name === 'rPh') isPhonetic = false
        isHeard = false
      },
    },
    take() {
      const taken = text
      text = ''
      return taken
    },
  }
}

/** Reads the styles that show a number as a date or a time. */
async function readDateStyles(parts: Parts, effort: Effort): Promise<Set<number>> {
  const dates = new Set<number>()
  const styles = parts('xl/styles.xml')
  if (!styles) return dates
  const formats = new Map<string, string>()
  let isOfCells = false
  let count = 0
  const listener: Listener = {
    open(name, { numFmtId = '', formatCode = '' }) {
      if (name === 'numFmt') formats.set(numFmtId, formatCode)
      if (name === 'cellXfs') isOfCells = true
      if (name !== 'xf' || !isOfCells) return
      const own = formats.get(numFmtId)
      if (own === undefined ? dateFormats.test(numFmtId) : showsDate(own)) dates.add(count)
      count += 1
    },
    close(name) {
      if (name === 'cellXfs') isOfCells = false
    },
  }
  await hearXml(styles, listener, effort)
  return dates
}

/** The numbers of the date and time formats that every workbook has (ECMA-376, part 1, 18.8.30). */
const dateFormats = /^(?:1[4-9]|2[0-2]|2[7-9]|3[0-6]|4[5-7]|5[0-8])$/

/**
 * Whether a format shows a date or a time: apart from text, colours and spaces, only those formats have such
 * letters.
 */
function showsDate(format: string): boolean {
  return /[dmyhs]/i.test(format.replaceAll(/"[^"]*"|\[[^\]]*\]|[\\_*]./g, ''))
}

/** Makes a listener that turns the tags of a sheet into rows. */
function sheetListener(rows: TableRow[], book: Book): Listener {
  let row: { line: number; cells: (TableCell | undefined)[]; isHidden: boolean } = emptyRow(0, false)
  let column = -1
  let cell: Omit<RawCell, 'text'> = { type: 'n', style: 0, isFormula: false }
  let cells = 0
  const heard = textListener()
  return {
    open(name, { r, hidden, t = 'n', s = '0' }) {
      heard.listener.open(name)
      if (name === 'row') {
        row = emptyRow(lineNumber(r, row.line), hidden === '1' || hidden === 'true')
        column = -1
      } else if (name === 'c') {
        if (++cells > importBounds.cellsMax) throw tooMany(importBounds.cellsMax, 'cells')
        column = columnNumber(r, column)
        cell = { type: t, style: Number(s), isFormula: false }
        heard.take()
      } else if (name === 'f') cell.isFormula = true
    },
    text: heard.listener.text,
    close(name) {
      heard.listener.close(name)
      if (name === 'c') {
        const value = cellOf({ ...cell, text: heard.take() }, book)
        if (value === undefined) return
        if (column >= importBounds.columnsMax) throw tooMany(importBounds.columnsMax, 'columns')
        row.cells[column] = value
      } else if (name === 'row' && row.cells.some((each) => each !== undefined)) rows.push(row)
    },
  }
}

function emptyRow(line: number, isHidden: boolean): { line: number; cells: []; isHidden: boolean } {
  return { line, cells: [], isHidden }
}

interface RawCell {
  type: string
  style: number
  isFormula: boolean
  text: string
}

/**
 * Returns the value that a cell shows; undefined where it is empty.
 * @throws Error where the cell has a content that no workbook has
 */
function cellOf(
  { type, style, isFormula, text }: RawCell,
  { texts, dateStyles }: Book,
): TableCell | undefined {
  if (isFormula) {
    // The formulas of lines that are prepared in advance give an empty text until the line is used.
    return type === 'str' && text.trim() === ''
      ? undefined
      : { unusable: 'is a formula: replace it by its value' }
  }
  if (type === 's') return textOf(texts[Number(text || 'none')])
  if (type === 'inlineStr' || type === 'str') return textOf(text)
  if (text === '') return undefined
  if (type === 'e') return { unusable: `is an error of the spreadsheet (${text})` }
  if (type === 'd' || dateStyles.has(style)) return { unusable: 'is a date' }
  if (type === 'b') return { unusable: 'is a truth value' }
  const number = Number(text)
  if (type !== 'n' || !Number.isFinite(number)) throw new Error('no value')
  return number
}

function textOf(text: string | undefined): string | undefined {
  if (text === undefined) throw new Error('no such text')
  return text.trim() === '' ? undefined : text
}

function lineNumber(given: string | undefined, before: number): number {
  const line = given === undefined ? before + 1 : Number(given)
  if (!Number.isInteger(line) || line <= before) throw new Error('no line')
  if (line > linesMax) throw tooMany(linesMax, 'lines')
  return line
}

/** Returns the index of a cell's column: `B7` → 1. */
function columnNumber(given: string | undefined, before: number): number {
  const [, letters] = /^([A-Z]{1,3})\d+$/.exec(given ?? '') ?? []
  if (given !== undefined && letters === undefined) throw new Error('no cell')
  const column = letters
    ? Array.from(letters).reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0) - 1
    : before + 1
  if (column >= columnsMax) throw new Error('no column')
  return column
}

/** The most lines and columns that a sheet can have. */
const linesMax = 1_048_576
const columnsMax = 16_384
