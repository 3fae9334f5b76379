import type { ExportCell, Column } from '../resources/export.ts'

/** The line of the columns' names. */
export function csvHead(columns: readonly Column[]): string {
  return csvLines(columns, [columns.map(({ name }) => name)])
}

/** Rows as RFC 4180 writes them. What is not there is empty. */
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
  // Spreadsheets run what begins like this, also behind a semicolon or a line break: French ones begin a cell
  // there, and heed no quotation mark before it. What somebody typed stays text.
  const safe = isText ? text.replaceAll(/^(?=[=+\-@\t\r])|(?<=;|.[\t\r\n])(?=[\s"']*[=+\-@])/gs, "'") : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
