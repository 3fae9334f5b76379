import { exactNumber } from '../../shared/exact-number.ts'
import { invalidInput } from '../../shared/input.ts'
import type { DomainError } from '../../shared/errors.ts'
import { importBounds } from './bounds.ts'
import { fileProblem, type TableCell, type TableRow, type Unusable } from './row.ts'
import { type WorkbookParts, textListener, tooMany } from './xlsx-book.ts'
import { showsDate, showsText, showsWholeNumber } from './xlsx-formats.ts'
import { type ConditionalEffect, conditionalListener } from './xlsx-styles.ts'
import type { Listener } from './xml.ts'

interface Row {
  line: number
  cells: (TableCell | undefined)[]
  unusable: string | null
}

/**
 * Makes a listener that turns the tags of a sheet into rows. A cell that a person does not see is unusable.
 */
export function sheetListener(rows: TableRow[], book: WorkbookParts): Listener {
  let row: Row = emptyRow(0, null)
  let column = -1
  let cell: Omit<RawCell, 'text'> = { type: 'n', style: 0, isFormula: false }
  let cells = 0
  let isInRows = false
  const heard = textListener()
  const columns = columnListener()
  const rules = rulesListener(book)
  const merged = mergedCells()
  return {
    open(name, attributes) {
      const { r, hidden, ht, t = 'n', s = '0' } = attributes
      heard.listener.open(name, attributes)
      if (name === 'sheetData') isInRows = true
      if (!isInRows) {
        columns.open(name, attributes)
        rules.open(name, attributes)
      } else if (name === 'row') {
        row = emptyRow(lineNumber(r, row.line), isTrue(hidden) || isNothing(ht) ? hiddenLine : null)
        column = -1
      } else if (name === 'c') {
        if (++cells > importBounds.cellsMax) throw tooMany(importBounds.cellsMax, 'cells')
        column = columnNumber(r, { line: row.line, before: column })
        cell = { type: t, style: Number(s), isFormula: false }
        heard.take()
      } else if (name === 'f') cell.isFormula = true
      if (name === 'mergeCell') merged.check(attributes['ref'] ?? '')
    },
    text(part) {
      if (isInRows) heard.listener.text(part)
      else rules.text(part)
    },
    close(name) {
      heard.listener.close(name)
      if (name === 'sheetData') isInRows = false
      if (!isInRows) return rules.close(name)
      if (name === 'c') {
        const isStruck = heard.isStruck()
        const text = heard.take()
        const value = cellOf({ ...cell, text }, book)
        if (value === undefined) return
        if (isStruck || isStruckOut({ ...cell, text }, book)) row.unusable ??= struckLine
        if (column >= importBounds.columnsMax) throw tooMany(importBounds.columnsMax, 'columns')
        row.cells[column] = columns.isHidden(column) ? hiddenCell(value) : value
        merged.add(row.line, column)
      } else if (name === 'row' && row.cells.some((each) => each !== undefined)) rows.push(row)
    },
  }
}

function emptyRow(line: number, unusable: string | null): Row {
  return { line, cells: [], unusable }
}

const hiddenLine = 'is in a hidden line: show the line, or delete it'
const struckLine = 'is in a line with a content that is struck out: delete the line, or remove the stroke'

function isStruckOut({ type, style, text }: RawCell, { struckTexts, styles }: WorkbookParts): boolean {
  return styles.cells[style]?.isStruck === true || (type === 's' && struckTexts.has(Number(text)))
}

/**
 * Makes a listener to the conditional formats of a sheet. No condition is computed, because formulas decide
 * whether it holds; but a format that hides only zeros, as sheets prepared in advance have it, hides no line
 * that could be paid.
 * @throws DomainError INVALID_INPUT where a format may hide or strike out a content
 */
function rulesListener({ styles: { conditional } }: WorkbookParts): Required<Listener> {
  let place = ''
  let effect: ConditionalEffect = null
  let isEquality = false
  let formula: string | null = null
  let compared = ''
  const refuse = () => {
    const what = `has a conditional format${place} that may hide, alter or strike out a content`
    throw fileProblem(`${what}: remove it`)
  }
  const inline = conditionalListener((given) => (effect = given))
  return {
    open(name, attributes) {
      inline.open(name, attributes)
      const { sqref, dxfId, showValue, type, operator } = attributes
      if (name === 'conditionalFormatting') place = sqref ? ` in ${sqref.slice(0, placeLengthMax)}` : ''
      if (name === 'cfRule') {
        effect = dxfId === undefined ? null : (conditional[Number(dxfId)] ?? null)
        isEquality = type === 'cellIs' && operator === 'equal'
        compared = ''
      }
      if (name === 'formula' || name === 'f') formula = ''
      if (['dataBar', 'iconSet'].includes(name) && ['0', 'false'].includes(showValue ?? '')) refuse()
    },
    text(part) {
      if (formula !== null && formula.length < placeLengthMax) formula += part
    },
    close(name) {
      inline.close(name)
      if (name === 'formula' || name === 'f') {
        compared += formula ?? ''
        formula = null
      }
      if (name !== 'cfRule') return
      const isOfZero = isEquality && compared.trim() === '0'
      if (effect === 'strikes' || (effect === 'hides' && !isOfZero)) refuse()
    },
  }
}

/** The most characters of the place of a conditional format in a message. */
const placeLengthMax = 40

function hiddenCell(value: TableCell): Unusable {
  const unusable = 'is in a hidden column: show the column, or delete it'
  return typeof value === 'string' ? { unusable, text: value } : { unusable }
}

function isTrue(attribute: string | undefined): boolean {
  return attribute === '1' || attribute === 'true'
}

/** Whether a height in points or a width in characters leaves nothing to see. */
function isNothing(size: string | undefined): boolean {
  return size !== undefined && Number(size) < 1
}

/** Makes a listener to the columns of a sheet, which stand before its rows. */
function columnListener() {
  let last = 0
  let usual: string | undefined
  const given = new Map<number, boolean>()
  return {
    open(name: string, { min, max, width, hidden, defaultColWidth }: Readonly<Record<string, string>>) {
      if (name === 'sheetFormatPr') usual = defaultColWidth
      if (name !== 'col') return
      const [from, to] = [Number(min), Number(max)]
      if (!(from > last && to >= from)) throw new Error('columns that overlap')
      for (let column = from; column <= Math.min(to, importBounds.columnsMax); column += 1) {
        given.set(column - 1, isTrue(hidden) || isNothing(width ?? usual))
      }
      last = to
    },
    isHidden: (column: number) => given.get(column) ?? isNothing(usual),
  }
}

/** Remembers which cells have a content, to find those that lie under merged cells. */
function mergedCells() {
  const contents = new Map<number, number[]>()
  let lastLine = 0
  let lookups = 0
  return {
    add(line: number, column: number) {
      const columns = contents.get(line)
      if (columns) columns.push(column)
      else contents.set(line, [column])
      lastLine = line
    },
    /** @throws DomainError INVALID_INPUT where a content is not the one that the merged cells show */
    check(ref: string) {
      const [, left = '', top, right = '', bottom] = /^([A-Z]{1,3})(\d+):([A-Z]{1,3})(\d+)$/.exec(ref) ?? []
      const [from, to] = [indexOf(left), indexOf(right)]
      for (let line = Number(top); line <= Math.min(Number(bottom), lastLine); line += 1) {
        const columns = contents.get(line) ?? []
        lookups += 1 + columns.length
        if (lookups > importBounds.mergedMax) throw tooMany(importBounds.mergedMax, 'merged cells')
        const isCovered = (column: number) =>
          column >= from && column <= to && !(column === from && line === Number(top))
        if (columns.some(isCovered)) {
          throw lineProblem(line, `has a content under the merged cells ${ref}: split these cells`)
        }
      }
    },
  }
}

function lineProblem(line: number, message: string): DomainError {
  return invalidInput([{ field: `lines[${line}]`, message }])
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
  { texts, styles }: WorkbookParts,
): TableCell | undefined {
  const { format, isUnseen } = styles.cells[style] ?? { format: 'General', isUnseen: false }
  if (isUnseen) {
    const content = type === 's' ? texts[Number(text || 'none')] : text
    return content?.trim() ? { unusable: unseen, text: content } : undefined
  }
  if (isFormula) {
    // The formulas of lines that are prepared in advance give an empty text until the line is used.
    return type === 'str' && text.trim() === ''
      ? undefined
      : { unusable: 'is a formula: replace it by its value' }
  }
  if (type === 's') return textOf(texts[Number(text || 'none')], format)
  if (type === 'inlineStr' || type === 'str') return textOf(text, format)
  if (text === '') return undefined
  if (type === 'e') return { unusable: `is an error of the spreadsheet (${text})` }
  if (type === 'd' || showsDate(format)) return { unusable: 'is a date' }
  if (type === 'b') return { unusable: 'is a truth value' }
  const number = exactNumber(text)
  if (type !== 'n' || !Number.isFinite(number)) throw new Error('no value')
  return showsWholeNumber(format) ? number : { unusable: hiddenByFormat }
}

const unseen = 'has the colour of its background: choose another colour'
const hiddenByFormat = 'is hidden or altered by the format of its cell: choose the format General'

function textOf(text: string | undefined, format: string): TableCell | undefined {
  if (text === undefined) throw new Error('no such text')
  if (text.trim() === '') return undefined
  return showsText(format) ? text : { unusable: hiddenByFormat, text }
}

function lineNumber(given: string | undefined, before: number): number {
  const line = given === undefined ? before + 1 : Number(given)
  if (!Number.isInteger(line) || line <= before) throw new Error('no line')
  if (line > linesMax) throw tooMany(linesMax, 'lines')
  return line
}

/**
 * Returns the index of a cell's column: `B7` → 1.
 * @throws DomainError INVALID_INPUT where the cell stands twice, or before another that is to the left of it
 */
function columnNumber(given: string | undefined, { line, before }: { line: number; before: number }): number {
  const [, letters, ofLine] = /^([A-Z]{1,3})(\d+)$/.exec(given ?? '') ?? []
  if (given !== undefined && Number(ofLine) !== line) throw new Error('no cell of this line')
  const column = letters === undefined ? before + 1 : indexOf(letters)
  if (column >= columnsMax) throw new Error('no column')
  if (column <= before) throw lineProblem(line, `has the cell ${given} twice, or not in its place`)
  return column
}

/** Returns the index of a column: `A` → 0, `AA` → 26. */
function indexOf(letters: string): number {
  return Array.from(letters).reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0) - 1
}

/** The most lines and columns that a sheet can have. */
const linesMax = 1_048_576
const columnsMax = 16_384
