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
  // Spreadsheets run a cell that begins with one of these characters as a formula. French spreadsheets begin
  // a new cell also after a semicolon or a line break, and ignore a quotation mark before the character. The
  // apostrophe makes the cell a text.
  const safe = isText ? text.replaceAll(/^(?=[=+\-@\t\r])|(?<=;|.[\t\r\n])(?=[\s"']*[=+\-@])/gs, "'") : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
