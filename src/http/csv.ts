import type { ExportCell, Column } from '../resources/export.ts'

/** Returns the line with the names of the columns. */
export function csvHead(columns: readonly Column[]): string {
  return csvLines(columns, [columns.map(({ name }) => name)])
}

/** Returns rows in the form of RFC 4180. A null is an empty field. */
export function csvLines(columns: readonly Column[], rows: readonly (readonly ExportCell[])[]): string {
  let text = ''
  for (const row of rows) {
    for (const [index, cell] of row.entries()) {
      if (index > 0) text += ','
      text += field(cell, columns[index]?.isText === true)
    }
    text += '\r\n'
  }
  return text
}

function field(cell: ExportCell, isText: boolean): string {
  if (cell === null) return ''
  const text = cell instanceof Date ? cell.toISOString() : String(cell)
  const safe = isText ? text.replaceAll(beginnings.typed, "'") : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/**
 * Returns the text that a person typed, without the apostrophes that `csvLines` wrote into it, so that an
 * exported table can be imported.
 */
export function typedText(cell: string): string {
  return cell.replaceAll(beginnings.exported, '')
}

const beginnings = beginningsOf()

/**
 * Finds where spreadsheets begin a cell that they run as a formula: an apostrophe there makes the cell a
 * text. French spreadsheets begin a new cell also after a semicolon, and some after a tab or a line break.
 * Spreadsheets strip spaces, quotation marks and invisible characters from the beginning of a cell, and take
 * wide and small forms of the four signs as the signs. An apostrophe is passed over too: one that a person
 * typed before a sign gets a second one, so that `typedText` removes the right one.
 */
function beginningsOf() {
  const signs = String.raw`[=+\-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\ufb29\u2212⁺⁻⁼₊₋₌]`
  const passedOver = String.raw`[\s\p{C}\p{Z}\p{Default_Ignorable_Code_Point}"']*`
  const start = String.raw`(?<=^|[;\t-\r\x85\u2028\u2029])`
  const formula = `(?=${passedOver}${signs})`
  // Some programs strip these characters with the text before them, and others split the cell there.
  const control = String.raw`(?='*[\t\r\n])`
  return {
    typed: new RegExp(`${start}${formula}|^${control}`, 'gu'),
    exported: new RegExp(`${start}'${formula}|^'${control}`, 'gu'),
  }
}
