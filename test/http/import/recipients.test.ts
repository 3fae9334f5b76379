import { describe, expect, test } from 'vitest'
import { csvHead, csvLines } from '../../../src/http/csv.ts'
import { readRecipients } from '../../../src/http/import/recipients.ts'
import { zipOf } from '../../../src/http/import/zip.ts'
import { line, relations, sheetOf, text, titles, workbook, type Workbook } from '../../kit/workbook.ts'

const awa = { name: 'Awa Traoré', account: '70000001', amount: 5_000, payment_method: 'OperatorA' }
const csv = (...lines: string[]) => Buffer.from(lines.join('\r\n'))
const head = 'name,account,amount,payment_method'
const row = 'Awa Traoré,70000001,5000,OperatorA'
const readAll = async (file: Buffer) => (await readRecipients(file)).recipients
/** A matcher for a value that cannot be read. */
const unusable = (words: string): unknown =>
  expect.objectContaining({ unusable: expect.stringContaining(words) })
/** The problems that a file is refused for. */
async function problemsOf(file: Buffer): Promise<string[]> {
  const refused = await readRecipients(file).catch((error: unknown) => error)
  expect(refused).toMatchObject({ code: 'INVALID_INPUT' })
  const { problems } = (refused as { detail: { problems: { field: string; message: string }[] } }).detail
  return problems.map(({ field, message }) => `${field} ${message}`)
}

describe('CSV in every form that spreadsheets write', () => {
  const windows1252 = (value: string) => Buffer.from(value, 'latin1')
  test.each<[string, Buffer]>([
    ['UTF-8, commas', csv(head, row)],
    ['a BOM', csv(`\ufeff${head}`, row)],
    ['line feeds', Buffer.from(`${head}\n${row}\n`)],
    ['carriage returns', Buffer.from(`${head}\r${row}\r`)],
    ['no end of the last line', csv(head, row)],
    ['semicolons', csv(head.replaceAll(',', ';'), row.replaceAll(',', ';'))],
    ['tabs', csv(head.replaceAll(',', '\t'), row.replaceAll(',', '\t'))],
    ['UTF-16', Buffer.from(`\ufeff${head}\n${row}\n`.replaceAll(',', '\t'), 'utf16le')],
    ['UTF-16 of the other order', Buffer.from(`\ufeff${head}\n${row}\n`, 'utf16le').swap16()],
    ['a declared separator', csv('sep=;', head.replaceAll(',', ';'), row.replaceAll(',', ';'))],
    ['a declared separator after a BOM', csv('\ufeffSEP=,', `${head},";;;;;;"`, row)],
    [
      'Windows-1252 with titles in French',
      windows1252('Nom;Numéro;Montant;Opérateur\r\nAwa Traoré;70000001;5000;OperatorA'),
    ],
    ['titles in other letters', csv('NOM , Téléphone,MONTANT,Payment method', row)],
    ['accents as signs of their own', csv('nom,te\u0301le\u0301phone,montant,ope\u0301rateur', row)],
    [
      'another order, and unknown columns',
      csv('Note,montant,phone,operator,Nom', 'x,5000,70000001,OperatorA,Awa Traoré'),
    ],
    [
      'quotation marks',
      csv('"name","account","amount","payment_method"', '"Awa Traoré","70000001","5000","OperatorA"'),
    ],
    ['spaces around', csv(head, ' Awa Traoré , 70000001 , 5000 , OperatorA ')],
    ['empty lines', csv('', '', head, '', row, ',,,', '', '  ,,,')],
    ['separators in a quoted title', csv('"name",account,amount,payment_method,"a;b;c;d;e;f"', row)],
  ])('%s', async (_what, file) => {
    expect(await readAll(file)).toEqual([awa])
  })

  test('marks, separators and line breaks within quotation marks stay', async () => {
    const [first, second] = await readAll(
      csv(head, '"Traoré, ""la grande""\r\n(Awa)",1,5000,', 'Chez "Awa",2,5000,'),
    )
    expect([first?.name, second?.name]).toEqual(['Traoré, "la grande"\r\n(Awa)', 'Chez "Awa"'])
  })

  test('an empty cell is left out: the check of the recipients says which fields are required', async () => {
    expect(await readAll(csv(head, 'Awa', ',,5000'))).toEqual([{ name: 'Awa' }, { amount: 5_000 }])
  })
})

test('a column of currencies is read; francs have many names', async () => {
  const lines = ['XOF', 'F CFA', 'fcfa', 'EUR', ''].map((currency) => `Awa;1;5000;${currency}`)
  const read = await readAll(csv('nom;numero;montant;Devise', ...lines))
  expect(read.map(({ currency }) => currency)).toEqual(['XOF', 'XOF', 'XOF', 'EUR', undefined])
})

describe('amounts', () => {
  test.each<[string, number]>([
    ['5000', 5_000],
    ['5 000', 5_000],
    ['5\u00a0000', 5_000],
    ['5\u202f000 F\u00a0CFA', 5_000],
    ['5 000 FCFA', 5_000],
    ['5000 xof', 5_000],
    ['5000F', 5_000],
    ['1 500 000 CFA', 1_500_000],
    ['0', 0],
  ])('%s', async (written, amount) => {
    expect(await readAll(csv('nom;numero;montant', `Awa;1;${written}`))).toMatchObject([{ amount }])
  })

  test.each([
    '5000,00',
    '5000.00',
    '5,000',
    '5.000',
    '5 00',
    '50 00',
    '5 0000',
    '-5000',
    '+5000',
    '5e3',
    '=2*2500',
    '5000 EUR',
    '0x1388',
    'XOF',
    '9'.repeat(16),
  ])('%s is never read as an amount', async (written) => {
    const [recipient] = await readAll(csv('nom;numero;montant', `Awa;1;${written}`))
    expect(recipient?.amount).toEqual(unusable('must be whole francs'))
  })

  test('a comma without quotation marks makes no smaller amount', async () => {
    const [first, second] = await readAll(csv('name,account,amount', 'Awa,1,1500,500', 'Awa,1,1500,'))
    expect([first?.amount, second?.amount]).toEqual([unusable('more fields'), 1_500])
    // Nor where a value once stood beside the table: its first line has an empty column there.
    const [third, fourth] = await readAll(csv('name,account,amount,', 'Awa,1,1500,500', 'Awa,1,1500,'))
    expect([third?.amount, fourth?.amount]).toEqual([unusable('more fields'), 1_500])
  })
})

describe('XLSX', () => {
  const read = async (book: Workbook) => (await readAll(workbook(book)))[0]
  const five = '<c><v>5000</v></c>'

  test.each<[string, Workbook]>([
    ['numbers and texts in their cells', { rows: titles + line(2, five) }],
    [
      'prefixes',
      {
        sheet: sheetOf(titles + line(2, five)).replaceAll(/<(\/?)/g, '<$1x:'),
      },
    ],
    ['an account as text', { rows: titles + line(2, five, text('70000001')) }],
    ['an amount as text', { rows: titles + line(2, text('5 000 F CFA')) }],
    [
      'an amount that is shown in francs',
      {
        rows: titles + line(2, '<c s="1"><v>5000</v></c>'),
        styles:
          '<numFmts><numFmt numFmtId="164" formatCode="#,##0\\ &quot;F CFA y&quot;_d[$XOF-80C]"/></numFmts>' +
          '<cellXfs><xf numFmtId="0"/><xf numFmtId="164"/></cellXfs>',
      },
    ],
    [
      'cells that name their position',
      {
        rows:
          `<row r="1">${text('numéro', 'C1')}${text('nom', 'E1')}${text('montant', 'AB1')}</row><row r="9">` +
          `<c r="C9"><v>70000001</v></c>${text('Awa', 'E9')}<c r="AB9"><v>5000</v></c></row>`,
      },
    ],
    ['rows and cells that do not', { rows: (titles + line(2, five)).replaceAll(/ r="\d+"/g, '') }],
    [
      'another sheet, hidden before it',
      {
        sheets: '<sheet r:id="r1" state="hidden"/><sheet r:id="r2"/>',
        parts: {
          'xl/worksheets/sheet2.xml': sheetOf(titles + line(2, five)),
        },
      },
    ],
    [
      'rows prepared in advance, that show nothing',
      {
        rows:
          `${titles}${line(2, five)}<row r="3" hidden="1"/>` +
          '<row r="4"><c s="1"/><c t="str"><f>IF(A5="","",A5)</f><v></v></c></row>',
      },
    ],
    [
      'empty lines above',
      { rows: `<row r="1"><c s="1"/></row>${titles.replace('r="1"', 'r="3"')}${line(7, five)}` },
    ],
  ])('%s', async (_what, book) => {
    expect(await read(book)).toEqual({ name: 'Awa', account: '70000001', amount: 5_000 })
  })

  test('shared texts in several pieces are read; their pronunciation is not', async () => {
    const texts =
      '<si><t>nom</t></si><si><r><t>num</t></r><r><t xml:space="preserve">éro </t></r></si>' +
      '<si><t>montant</t><rPh><t>x</t></rPh></si><si><t>Awa &amp; <![CDATA[Fils]]></t></si>'
    const shared = (number: number) => `<c t="s"><v>${number}</v></c>`
    const first = `<row>${shared(0)}${shared(1)}${shared(2)}</row>`
    const rows = `${first}<row>${shared(3)}<c><v>1</v></c><c><v>5</v></c></row>`
    expect(await read({ rows, texts })).toEqual({ name: 'Awa & Fils', account: '1', amount: 5 })
  })

  test('signs that XML cannot have are read from their codes', async () => {
    const name = text('Awa_x000D__x000a_Traoré_x005F_x000D_')
    const [recipient] = await readAll(
      workbook({ rows: `${titles}<row r="2">${name}<c><v>1</v></c>${five}</row>` }),
    )
    expect(recipient?.name).toBe('Awa\r\nTraoré_x000D_')
  })

  test('a workbook whose parts have other names is read', async () => {
    const sheet = sheetOf(titles + line(2, '<c s="1"><v>45000</v></c>', '<c t="s"><v>0</v></c>'))
    const parts = {
      '_rels/.rels': relations({ type: 'officeDocument', target: '/book/workbook22.xml' }),
      'book/workbook22.xml': '<workbook xmlns:r="r"><sheets><sheet name="a" r:id="r1"/></sheets></workbook>',
      'book/_rels/workbook22.xml.rels': relations(
        { type: 'worksheet', target: 'sheet22.xml' },
        { type: 'sharedStrings', target: 'texts22.xml' },
        { type: 'styles', target: '/book/styles22.xml' },
      ),
      'book/sheet22.xml': sheet,
      'book/texts22.xml': '<sst><si><t>70000001</t></si></sst>',
      'book/styles22.xml': '<styleSheet><cellXfs><xf/><xf numFmtId="14"/></cellXfs></styleSheet>',
    }
    expect(await readAll(zipOf(parts))).toEqual([
      { name: 'Awa', account: '70000001', amount: unusable('is a date') },
    ])
  })

  test.each<[string, Record<string, string>, string]>([
    [
      'an OpenDocument file',
      { mimetype: 'application/vnd.oasis.opendocument.spreadsheet', 'content.xml': '<a/>' },
      'file is an OpenDocument file (ODS): save it as XLSX or CSV',
    ],
    [
      'a binary workbook',
      {
        '_rels/.rels': relations({ type: 'officeDocument', target: 'xl/workbook.bin' }),
        'xl/workbook.bin': '',
      },
      'file is a binary workbook (XLSB): save it as XLSX or CSV',
    ],
    [
      'another archive',
      { 'a.txt': 'a' },
      'file is an archive without a workbook: send the table as CSV or XLSX',
    ],
  ])('%s is refused for what it is', async (_what, parts, words) => {
    expect(await problemsOf(zipOf(parts))).toEqual([words])
  })

  test.each<[string, string, string, Workbook?]>([
    ['a formula, with any result', '<c><f>B2*2</f><v>5000</v></c>', 'is a formula'],
    ['a formula that was never worked out', '<c><f>B2*2</f><v></v></c>', 'is a formula'],
    ['an error', '<c t="e"><v>#REF!</v></c>', 'an error of the spreadsheet (#REF!)'],
    ['a truth value', '<c t="b"><v>1</v></c>', 'is a truth value'],
    ['a date', '<c t="d"><v>2026-01-31</v></c>', 'is a date'],
    [
      'a number that is shown as a date',
      '<c s="1"><v>45000</v></c>',
      'is a date',
      { styles: '<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs>' },
    ],
    [
      'a number that is shown as a day and month',
      '<c s="0"><v>45000</v></c>',
      'is a date',
      {
        styles:
          '<numFmts><numFmt numFmtId="165" formatCode="[$-40C]dd\\ mmm"/></numFmts>' +
          '<cellStyleXfs><xf numFmtId="0"/></cellStyleXfs><cellXfs><xf numFmtId="165"/></cellXfs>',
      },
    ],
  ])('%s is no amount', async (_what, cell, words, book = {}) => {
    expect((await read({ rows: titles + line(2, cell), ...book }))?.amount).toEqual(unusable(words))
  })

  test('a formula is no account either', async () => {
    expect(
      (await read({ rows: titles + line(2, five, '<c><f>B1</f><v>70000001</v></c>') }))?.account,
    ).toEqual(unusable('is a formula'))
  })

  test.each(['7000000.1', '-70000001', '7E+30'])('the number %s is no account', async (number) => {
    const account = `<c><v>${number}</v></c>`
    expect((await read({ rows: titles + line(2, five, account) }))?.account).toEqual(
      unusable('must be a mobile number'),
    )
  })

  test('a fraction is left to the check of amounts', async () => {
    expect((await read({ rows: titles + line(2, '<c><v>5000.5</v></c>') }))?.amount).toBe(5_000.5)
  })

  test('a recipient in a line that a filter hides is refused', async () => {
    expect((await read({ rows: titles + line(2, five, text('70000001'), ' hidden="1"') }))?.amount).toEqual(
      unusable('is in a hidden line'),
    )
  })
})

describe('problems, as the user of the table reads them', () => {
  test('name the line that a spreadsheet shows, its column, and the text in it', async () => {
    const { locate } = await readRecipients(
      csv('', 'Note;Nom;Numéro;Montant', '', '"x\n\ny";Awa;1;5,5', ';;;', ';Awa;2;1'),
    )
    expect(locate({ field: 'recipients[0].amount', message: 'is required' })).toEqual({
      field: 'lines[4].amount',
      message:
        'must be whole francs, such as 5000 or 5 000 F CFA, without a comma or a point (column D, Montant)',
      row: { name: 'Awa', account: '1', amount: '5,5' },
    })
    const second = { name: 'Awa', account: '2', amount: '1' }
    expect(locate({ field: 'recipients[1].amount', message: 'is too small' })).toEqual({
      field: 'lines[6].amount',
      message: 'is too small (column D, Montant)',
      row: second,
    })
    expect(locate({ field: 'recipients[1].paymentMethod', message: 'is required' })).toEqual({
      field: 'lines[6].payment_method',
      message: 'is required',
      row: second,
    })
    expect(locate({ field: 'recipients[1]', message: 'm' })).toEqual({
      field: 'lines[6]',
      message: 'm',
      row: second,
    })
    expect(locate({ field: 'recipients', message: 'm' })).toEqual({ field: 'file', message: 'm' })
    expect(locate({ field: 'title', message: 'm' })).toEqual({ field: 'title', message: 'm' })
  })

  test('name columns beyond Z', async () => {
    const book = {
      rows: `<row>${text('nom')}${text('numéro')}${text('montant', 'AAB1')}</row><row>${text('Awa')}</row>`,
    }
    const { locate } = await readRecipients(workbook(book))
    expect(locate({ field: 'recipients[0].amount', message: 'm' }).message).toBe('m (column AAB, montant)')
  })

  test.each<[string, Buffer, string[]]>([
    ['nothing', csv(''), ['file has no recipients']],
    ['titles alone', csv(head), ['file has no recipients']],
    [
      'no titles',
      csv(row, row),
      [
        'file has no column name or nom',
        'file has no column account or phone',
        'file has no column amount or montant',
      ],
    ],
    ['a title that is missing', csv('nom,montant', 'Awa,1'), ['file has no column account or phone']],
    [
      'a title that stands twice',
      csv('nom,phone,montant,Amount', 'Awa,1,1,2'),
      ['file has two columns with the same meaning: montant and Amount'],
    ],
    [
      '10,001 recipients',
      csv(head, ...Array.from({ length: 10_001 }, () => row)),
      ['file has more than 10000 recipients'],
    ],
    [
      'lines without end',
      csv(head, row, ...Array.from({ length: 50_000 }, () => ',,,')),
      ['file has more than 50000 lines'],
    ],
    [
      'a quotation mark that stays open',
      csv(head, row, '"Awa,1,2', row),
      ['lines[3] is too long, or has a quotation mark'],
    ],
    ['a line without end', csv(head, '', 'a'.repeat(20_000)), ['lines[3] is too long']],
    [
      'UTF-8 with a wrong byte',
      Buffer.concat([csv(head, row, '"Awa\nTraor'), Buffer.from([0xe9]), Buffer.from('",70000001,5000\n')]),
      ['lines[3] has a letter that is not UTF-8'],
    ],
    ['a web page', Buffer.from('\ufeff<html><table><tr><td>nom'), ['file is a web page']],
    [
      'an old workbook',
      Buffer.from('d0cf11e0a1b11ae1000000', 'hex'),
      ['file is an old Excel file, or has a password'],
    ],
    ['a picture', Buffer.from('89504e470d0a1a0a0000000d', 'hex'), ['file is not a ta']],
    ['a sheet without rows', workbook({}), ['file has no recipients']],
  ])('%s', async (_what, file, words) => {
    const problems = await problemsOf(file)
    expect(problems.map((problem, locate) => problem.slice(0, words[locate]?.length))).toEqual(words)
  })
})

test.each(['=Awa', ' ＝Awa', '-Awa', "'=Awa", "''@Awa", "'Awa", 'Awa;+Binta', "Awa; '=Binta", 'Awa "=1"'])(
  'the name %j of an exported list is the same name where the list is imported, also as a workbook',
  async (typed) => {
    const columns = ['name', 'account', 'amount'].map((name) => ({ name, isText: name === 'name' }))
    const table = csvHead(columns) + csvLines(columns, [[typed, '70000001', 5_000]])
    const name = typed.trim()
    expect(await readAll(Buffer.from(table))).toMatchObject([{ name, amount: 5_000 }])
    // A spreadsheet that opened the table keeps the text of the cell.
    const [, cell = ''] = /\r\n(.+),70000001,5000/.exec(table) ?? []
    const kept = cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell
    const rows = `${titles}<row>${text(kept)}<c><v>70000001</v></c><c><v>5000</v></c></row>`
    expect(await readAll(workbook({ rows }))).toMatchObject([{ name, amount: 5_000 }])
  },
)
