import { zipOf } from '../../src/http/import/zip.ts'

/** The parts of a test workbook; each part can be replaced. */
export interface Workbook {
  /** The rows of its sheet, as XML. */
  rows?: string
  sheet?: string
  texts?: string
  styles?: string
  sheets?: string
  parts?: Record<string, string>
}

/** Writes an XLSX file as spreadsheets do. */
export function workbook({ rows = '', texts = '', styles = '', parts = {}, ...more }: Workbook): Buffer {
  const { sheets = '<sheet name="a" r:id="r1"/>', sheet = sheetOf(rows) } = more
  return zipOf({
    '_rels/.rels': relations({ type: 'officeDocument', target: 'xl/workbook.xml' }),
    'xl/workbook.xml': `<workbook xmlns:r="r"><sheets>${sheets}</sheets></workbook>`,
    'xl/_rels/workbook.xml.rels': relations(
      { type: 'worksheet', target: 'worksheets/sheet1.xml' },
      { type: 'worksheet', target: '/xl/worksheets/sheet2.xml' },
      { type: 'sharedStrings', target: 'sharedStrings.xml' },
      { type: 'styles', target: 'styles.xml' },
    ),
    'xl/worksheets/sheet1.xml': sheet,
    'xl/sharedStrings.xml': `<sst>${texts}</sst>`,
    'xl/styles.xml': `<styleSheet>${styles}</styleSheet>`,
    ...parts,
  })
}

/** References to parts, with the ids r1, r2 and so on. */
export function relations(...to: readonly { type: string; target: string }[]): string {
  const types = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'
  const each = to.map(
    ({ type, target }, n) => `<Relationship Id="r${n + 1}" Type="${types}/${type}" Target="${target}"/>`,
  )
  return `<Relationships>${each.join('')}</Relationships>`
}

/** A sheet of these rows. */
export function sheetOf(rows: string): string {
  return `<worksheet><sheetData>${rows}</sheetData></worksheet>`
}

/** A cell of text. */
export function text(value: string, at = ''): string {
  return `<c${at && ` r="${at}"`} t="inlineStr"><is><t>${value}</t></is></c>`
}

/** The row of titles. */
export const titles = `<row r="1">${text('nom')}${text('numéro')}${text('montant')}</row>`

/** A row of a recipient: its cells as XML. */
export function line(number: number, amount: string, account = '<c><v>70000001</v></c>', more = ''): string {
  return `<row r="${number}"${more}>${text('Awa')}${account}${amount}</row>`
}
