import fc from 'fast-check'
import { format as shown } from 'numfmt'
import { describe, expect, test } from 'vitest'
import { readRecipients } from '../../../src/http/import/recipients.ts'
import { showsWholeNumber } from '../../../src/http/import/xlsx-formats.ts'
import { DomainError } from '../../../src/shared/errors.ts'
import { line, sheetOf, text, titles, workbook, type Workbook } from '../../kit/workbook.ts'

const five = '<c><v>5000</v></c>'
const awa = { name: 'Awa', account: '70000001', amount: 5_000 }

/** Reads the recipients, with the reason in place of each value that cannot be used. */
async function readAll(book: Workbook): Promise<object[]> {
  const { recipients } = await readRecipients(workbook(book))
  return recipients.map((each) =>
    Object.fromEntries(
      Object.entries(each).map(([name, cell]) => [name, typeof cell === 'object' ? cell.unusable : cell]),
    ),
  )
}

async function problemOf(book: Workbook): Promise<string> {
  const refused = await readRecipients(workbook(book)).catch((error: unknown) => error)
  expect(refused).toBeInstanceOf(DomainError)
  return (refused as DomainError).message
}

describe('of several sheets, the one that is paid is beyond doubt', () => {
  const table = sheetOf(titles + line(2, five))
  const sheets = (first = '', second = '') =>
    `<sheet name="Octobre" r:id="r1"${first}/><sheet name="Novembre" r:id="r2"${second}/>`
  const second = (sheet: string) => ({ parts: { 'xl/worksheets/sheet2.xml': sheet } })
  const twoTables =
    'file has tables in the sheets "Octobre" and "Novembre": keep one of them, or hide the other.'

  test.each<[string, string]>([
    ['with the same titles', table],
    ['under a line of its own', sheetOf(`<row r="1">${text('Paie')}</row>${titles.replace('"1"', '"2"')}`)],
    ['with titles in other words', sheetOf((titles + line(2, five)).replace('nom', 'prénom'))],
    [
      'whose titles are formulas',
      sheetOf(
        `<row>${'<c t="str"><f>Octobre!A1</f><v>nom</v></c>'.repeat(3)}</row>` +
          line(2, five).replaceAll('r="2"', ''),
      ),
    ],
  ])('two visible tables are refused, the second %s', async (_what, sheet) => {
    const rows = `${titles}${line(2, five)}`
    const lines = sheet.includes('Paie')
      ? sheet.replace('</sheetData>', `${line(3, five)}</sheetData>`)
      : sheet
    expect(await problemOf({ rows, sheets: sheets(), ...second(lines) })).toBe(twoTables)
  })

  test.each<[string, Partial<Workbook>]>([
    ['a hidden sheet', { sheets: sheets('', ' state="hidden"'), ...second(table) }],
    ['a sheet that only a program can show', { sheets: sheets('', ' state="veryHidden"'), ...second(table) }],
    ['an empty sheet', { sheets: sheets(), ...second(sheetOf('')) }],
    ['a sheet of notes', { sheets: sheets(), ...second(sheetOf(`<row>${text('Lisez ceci')}</row>`)) }],
    ['the titles of the next month', { sheets: sheets(), ...second(sheetOf(titles)) }],
    [
      'a sheet of a chart',
      {
        sheets: '<sheet name="Octobre" r:id="r1"/><sheet name="Courbe" r:id="r9"/>',
      },
    ],
  ])('beside a table, %s is no doubt', async (_what, book) => {
    expect(await readAll({ rows: titles + line(2, five), ...book })).toEqual([awa])
  })

  test('notes before the table are passed over', async () => {
    const notes = `<row r="1">${text('Lisez ceci')}</row><row r="2">${text('Mode')}${text('Valeur')}</row>`
    expect(await readAll({ rows: notes, sheets: sheets(), ...second(table) })).toEqual([awa])
  })
})

describe('a content that a person does not see is not paid', () => {
  const sheetWith = (before: string, after = '') =>
    `<worksheet>${before}<sheetData>${titles}${line(2, five)}</sheetData>${after}</worksheet>`
  const hiddenColumn = 'is in a hidden column: show the column, or delete it'

  test.each<[string, string, object]>([
    ['hidden', '<cols><col min="3" max="3" hidden="1"/></cols>', { amount: hiddenColumn }],
    [
      'hidden with others',
      '<cols><col min="2" max="16384" hidden="true"/></cols>',
      { account: hiddenColumn },
    ],
    [
      'of no width',
      '<cols><col min="3" max="3" width="0" customWidth="1"/></cols>',
      { amount: hiddenColumn },
    ],
    [
      'of no width of its own, where columns have none',
      '<sheetFormatPr defaultColWidth="0"/><cols><col min="1" max="2" width="9"/>' +
        '<col min="3" max="3"/></cols>',
      { amount: hiddenColumn },
    ],
    [
      'without a mention, where columns have no width',
      '<sheetFormatPr defaultColWidth="0"/>',
      { name: hiddenColumn },
    ],
  ])('a column %s', async (_what, before, refused) => {
    const [recipient] = await readAll({ sheet: sheetWith(before) })
    expect(recipient).toMatchObject(refused)
  })

  test('a hidden column is named by its letter and title; one that is not read may be hidden', async () => {
    const { locate } = await readRecipients(
      workbook({ sheet: sheetWith('<cols><col min="3" max="3" hidden="1"/></cols>') }),
    )
    expect(locate({ field: 'recipients[0].amount', message: 'm' })).toEqual({
      field: 'lines[2].amount',
      message: `${hiddenColumn} (column C, montant)`,
      row: { name: 'Awa', account: '70000001' },
    })
    const note = `<row r="1">${text('nom')}${text('note')}${text('numéro')}${text('montant')}</row>`
    const rows = `${note}<row r="2">${text('Awa')}${text('x')}<c><v>70000001</v></c>${five}</row>`
    const columns = '<cols><col min="2" max="2" hidden="1"/></cols>'
    const sheet = `<worksheet>${columns}<sheetData>${rows}</sheetData></worksheet>`
    expect(await readAll({ sheet })).toEqual([awa])
  })

  test.each(['ht="0"', 'ht="0.5" customHeight="1"', 'hidden="1"'])('a line with %s', async (attribute) => {
    const rows = titles + line(2, five, '<c><v>70000001</v></c>', ` ${attribute}`)
    expect(await readAll({ rows })).toMatchObject([{ amount: expect.stringContaining('in a hidden line') }])
  })

  test.each(['C2:C3', 'A2:C2', 'A1:C2', 'B1:C2'])('a content under the merged cells %s', async (ref) => {
    const merge = `<mergeCells><mergeCell ref="${ref}"/></mergeCells>`
    const rows = `<sheetData>${titles}${line(2, five)}${line(3, five)}</sheetData>`
    const sheet = `<worksheet>${rows}${merge}</worksheet>`
    expect(await problemOf({ sheet })).toMatch(
      new RegExp(`^lines\\[[123]\\] has a content under the merged cells ${ref}: split these cells`),
    )
  })

  test('merged cells that hide nothing are read', async () => {
    const merge = '<mergeCells><mergeCell ref="D1:F1"/><mergeCell ref="C2:E2"/></mergeCells>'
    expect(await readAll({ sheet: sheetWith('', merge) })).toEqual([awa])
  })

  test.each<[string, string]>([
    ['twice', '<c r="C2"><v>5000</v></c><c r="C2"><v>99000</v></c>'],
    ['twice, once without a place', '<c><v>5000</v></c><c r="C2"><v>99000</v></c>'],
    ['after one to its right', '<c r="D2"><v>5000</v></c><c r="C2"><v>99000</v></c>'],
  ])('a cell that stands %s', async (_what, cells) => {
    const rows = `${titles}<row r="2">${text('Awa')}<c><v>70000001</v></c>${cells}</row>`
    expect(await problemOf({ rows })).toBe('lines[2] has the cell C2 twice, or not in its place.')
  })

  test('a cell of another line is no cell of this one', async () => {
    const rows = `${titles}<row r="2">${text('Awa')}<c><v>70000001</v></c><c r="C3"><v>5000</v></c></row>`
    expect(await problemOf({ rows })).toContain('is damaged')
  })

  test.each(['<v>99000</v>', '<f>SUM(C2)</f><v>5000</v>'])(
    'beside the table, and under a column without a title: %s',
    async (content) => {
      const beside = `<row r="2">${text('Awa')}<c><v>70000001</v></c>${five}<c>${content}</c></row>`
      const more = { amount: expect.stringContaining('more fields than titles') }
      expect(await readAll({ rows: titles + beside })).toMatchObject([more])
      const wide = titles.replace('</row>', `<c/>${text('note')}</row>`)
      expect(await readAll({ rows: wide + beside })).toMatchObject([more])
    },
  )
})

describe('a number whose format hides or changes it is not paid', () => {
  const quoted = (code: string) => code.replaceAll('"', '&quot;').replaceAll('<', '&lt;')
  const styles = (code: string) =>
    `<numFmts><numFmt numFmtId="164" formatCode="${quoted(code)}"/></numFmts>` +
    '<cellXfs><xf numFmtId="0"/><xf numFmtId="164"/></cellXfs>'
  const amountAs = async (code: string, value = '<c s="1"><v>5000</v></c>') =>
    (await readAll({ rows: titles + line(2, value), styles: styles(code) }))[0]

  test.each([
    'General',
    '0',
    '#,##0',
    '# ##0',
    '#,##0.00',
    '#,##0\\ "F CFA"',
    '_-* #,##0\\ "F"_-;-* #,##0\\ "F"_-;_-* "-"\\ "F"_-;_-@_-',
    '[$XOF-80C] #,##0',
    '[Red]#,##0;[Blue]-#,##0',
    '00 00 00 00',
    '@',
  ])('%s shows the number', async (code) => {
    expect(await amountAs(code)).toEqual(awa)
  })

  test.each([
    ';;;',
    '#,##0,',
    '#,##0,,"M"',
    '#,##0,.0',
    '0%',
    '0"000"',
    '0\\0',
    '"9"0',
    '0.00E+00',
    '# ?/?',
    '"payé"',
    '[<10000]"";0',
    '[White]0',
    '[$5-40C]0',
    '0.000',
    '""',
    '-0',
  ])('%s does not', async (code) => {
    expect(await amountAs(code)).toMatchObject({
      amount: expect.stringContaining('by the format of its cell'),
    })
  })

  test.each<[string, string]>([
    ['9', 'as hundredths'],
    ['11', 'as a power'],
    ['12', 'as a fraction'],
  ])('nor does the built-in format %s, %s', async (id) => {
    const own = `<cellXfs><xf numFmtId="0"/><xf numFmtId="${id}"/></cellXfs>`
    const [recipient] = await readAll({ rows: titles + line(2, '<c s="1"><v>5000</v></c>'), styles: own })
    expect(recipient).toMatchObject({ amount: expect.stringContaining('by the format of its cell') })
  })

  test('a text may be hidden or altered too', async () => {
    const cell = text('5 000').replace('<c', '<c s="1"')
    expect(await amountAs('0;-0;0;@" F"', cell)).toEqual(awa)
    for (const code of [';;;', '0;0;0;"x"', '@"9"']) {
      expect(await amountAs(code, cell)).toMatchObject({
        amount: expect.stringContaining('by the format of its cell'),
      })
    }
  })

  test('a format that is accepted shows these digits, as another program shows them', () => {
    const pieces = ['0', '#', '?', ',', '.', '0.00', '#,##0', ' ', '"F"', '"9"', '\\0', '_-', '* ', '%', ';']
    const codes = fc.array(fc.constantFrom(...pieces, '[Red]', '[<9]', '[$XOF-80C]', '-', 'General', '@'), {
      minLength: 1,
      maxLength: 8,
    })
    let accepted = 0
    fc.assert(
      fc.property(codes, fc.integer({ min: 1, max: 1_000_000 }), (parts, amount) => {
        const code = parts.join('')
        if (!showsWholeNumber(code)) return
        accepted += 1
        const seen = shown(code, amount, { throws: false })
        // A format that the other program cannot read is of no spreadsheet.
        if (seen.startsWith('#')) return
        const digits = seen.replace(/[.,]0{0,2}(?=\D*$)/, '').replaceAll(/\D/g, '')
        expect([code, Number(digits)]).toEqual([code, amount])
      }),
      { numRuns: 4_000 },
    )
    expect(accepted).toBeGreaterThan(400)
  })
})

describe('an amount is the number that stands in its cell', () => {
  test.each(['99.99999999999999999', '5000.00000000000000001', '5.0000000000000000001E3', '1E-400'])(
    '%s has a fraction, and is no whole number',
    async (number) => {
      const [recipient] = await readAll({ rows: titles + line(2, `<c><v>${number}</v></c>`) })
      expect(Number.isInteger(Reflect.get(recipient ?? {}, 'amount'))).toBe(false)
    },
  )

  test.each(['5000', '5000.0', '5E3', '5000.00000000000000000'])('%s is 5,000 francs', async (number) => {
    expect(await readAll({ rows: titles + line(2, `<c><v>${number}</v></c>`) })).toEqual([awa])
  })

  test('a telephone has no fraction either', async () => {
    const rows = titles + line(2, five, '<c><v>70000001.000000000001</v></c>')
    expect(await readAll({ rows })).toEqual([{ ...awa, account: 'must be a mobile number in Mali' }])
  })
})
