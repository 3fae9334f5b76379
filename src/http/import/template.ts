import { zipOf } from './zip.ts'

/** The options of a template: its language, and whether it is for a sandbox. */
export interface TemplateOptions {
  language: 'fr' | 'en'
  isSandbox: boolean
}

/**
 * Makes a CSV file in the form that spreadsheets of that language open: French ones separate fields by
 * semicolons.
 */
export function csvTemplate(options: TemplateOptions): Buffer {
  const separator = options.language === 'fr' ? ';' : ','
  const lines = linesOf(options).map((cells) => `${cells.join(separator)}\r\n`)
  return Buffer.from(`\ufeff${lines.join('')}`)
}

export function xlsxTemplate(options: TemplateOptions): Buffer {
  const cell = (value: string | number) =>
    typeof value === 'number' ? `<c><v>${value}</v></c>` : `<c t="inlineStr"><is><t>${value}</t></is></c>`
  const name = options.language === 'fr' ? 'Bénéficiaires' : 'Recipients'
  const rows = linesOf(options).map((cells) => `<row>${cells.map(cell).join('')}</row>`)
  return zipOf({
    '[Content_Types].xml': xml(
      `<Types xmlns="${ns}package/2006/content-types">` +
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>' +
        `<Override PartName="/xl/workbook.xml" ContentType="${type}sheet.main+xml"/>` +
        `<Override PartName="/xl/worksheets/sheet1.xml" ContentType="${type}worksheet+xml"/></Types>`,
    ),
    '_rels/.rels': relation('officeDocument', 'xl/workbook.xml'),
    'xl/workbook.xml': xml(
      `<workbook xmlns="${ns}spreadsheetml/2006/main" xmlns:r="${ns}officeDocument/2006/relationships">` +
        `<sheets><sheet name="${name}" sheetId="1" r:id="r1"/></sheets></workbook>`,
    ),
    'xl/_rels/workbook.xml.rels': relation('worksheet', 'worksheets/sheet1.xml'),
    'xl/worksheets/sheet1.xml': xml(
      `<worksheet xmlns="${ns}spreadsheetml/2006/main"><cols>` +
        '<col min="1" max="1" width="30" customWidth="1"/><col min="2" max="4" width="18" customWidth="1"/>' +
        `</cols><sheetData>${rows.join('')}</sheetData></worksheet>`,
    ),
  })
}

/**
 * Returns the titles and two examples. The examples of a sandbox can be sent unchanged. In production their
 * numbers are not valid, because a valid one could belong to a person: a merchant who forgets to remove an
 * example gets an error, and no payment is made.
 */
function linesOf({ language, isSandbox }: TemplateOptions): (string | number)[][] {
  const [one, two] = isSandbox ? ['70 00 00 01', '70 00 00 02'] : ['7X XX XX XX', '7X XX XX XX']
  return [
    language === 'fr'
      ? ['nom', 'numéro', 'montant', 'opérateur']
      : ['name', 'account', 'amount', 'payment_method'],
    ['Awa Traoré', one, 5_000, 'OperatorA'],
    ['Moussa Coulibaly', two, 7_500, 'OperatorB'],
  ]
}

const ns = 'http://schemas.openxmlformats.org/'
const type = 'application/vnd.openxmlformats-officedocument.spreadsheetml.'

function xml(text: string): string {
  return `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n${text}`
}

function relation(kind: string, target: string): string {
  const what = `${ns}officeDocument/2006/relationships/${kind}`
  return xml(
    `<Relationships xmlns="${ns}package/2006/relationships">` +
      `<Relationship Id="r1" Type="${what}" Target="${target}"/></Relationships>`,
  )
}
