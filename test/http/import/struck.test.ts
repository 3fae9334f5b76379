import { describe, expect, test } from 'vitest'
import { readRecipients } from '../../../src/http/import/recipients.ts'
import { DomainError } from '../../../src/shared/errors.ts'
import { line, text, titles, workbook, type Workbook } from '../../kit/workbook.ts'

// A clerk strikes out a person who shall not be paid, or hides a line by its colours.

const five = '<c><v>5000</v></c>'
const awa = { name: 'Awa', account: '70000001', amount: 5_000 }
const struck = 'is in a line with a content that is struck out: delete the line, or remove the stroke'
const unseen = 'has the colour of its background: choose another colour'

async function readAll(book: Workbook): Promise<object[]> {
  const { recipients } = await readRecipients(workbook(book))
  return recipients.map((each) =>
    Object.fromEntries(
      Object.entries(each).map(([name, cell]) => [name, typeof cell === 'object' ? cell.unusable : cell]),
    ),
  )
}

/** Styles in which style 1 has this font and this fill. */
const stylesOf = (font: string, fill = '', more = '') =>
  `<fonts><font/><font>${font}</font></fonts><fills><fill/><fill>${fill}</fill></fills>
   <borders><border><left><color rgb="FFFFFFFF"/></left></border></borders>
   <cellStyleXfs><xf fontId="1" fillId="0"/></cellStyleXfs>
   <cellXfs><xf fontId="0" fillId="0"/><xf fontId="1" fillId="1"/></cellXfs>${more}`
const styled = (cell: string) => cell.replace('<c', '<c s="1"')
const solid = (colour: string) => `<patternFill patternType="solid"><fgColor ${colour}/></patternFill>`

describe('a line with a content that is struck out is not paid', () => {
  const styles = stylesOf('<b/><strike/>')
  const cells = { name: text('Awa'), account: '<c><v>70000001</v></c>', amount: five }
  const lineOf = (more: Partial<typeof cells>, note = '') =>
    `<row r="2">${Object.values({ ...cells, ...more }).join('')}${note}</row>`
  const withNote = titles.replace('</row>', `${text('prénom')}</row>`)

  test.each<[string, string]>([
    ['its name', lineOf({ name: styled(cells.name) })],
    ['its account', lineOf({ account: styled(cells.account) })],
    ['its amount', lineOf({ amount: styled(five) })],
    ['a content that is not read', lineOf({}, styled(text('Fatou')))],
    [
      'a part of a text',
      lineOf({
        name: '<c t="inlineStr"><is><r><t>Awa</t></r><r><rPr><strike/></rPr><t> Ba</t></r></is></c>',
      }),
    ],
    ['a part of a shared text', lineOf({ name: '<c t="s"><v>1</v></c>' })],
  ])('%s', async (_what, row) => {
    const texts = '<si><t>Awa</t></si><si><r><rPr><strike val="1"/></rPr><t>Awa</t></r></si>'
    const [recipient] = await readAll({ rows: withNote + row, styles, texts })
    expect(recipient).toMatchObject({ amount: struck })
  })

  test('the place of the line is named', async () => {
    const rows = titles + line(2, five) + line(5, styled(five))
    const { locate } = await readRecipients(workbook({ rows, styles }))
    expect(locate({ field: 'recipients[1].amount', message: 'm' })).toEqual({
      field: 'lines[5].amount',
      message: `${struck} (column C, montant)`,
      row: { name: 'Awa', account: '70000001', amount: '5000' },
    })
  })

  test.each<[string, Workbook]>([
    ['a stroke that is taken back', { styles: stylesOf('<strike val="0"/>') }],
    ['a stroke that is false', { styles: stylesOf('<strike val="false"/>') }],
    [
      'a style that no cell has',
      { styles: stylesOf('').replace('</fonts>', '<font><strike/></font></fonts>') },
    ],
    [
      'a shared text that is struck out, but not in this table',
      { styles: stylesOf(''), texts: '<si><r><rPr><strike/></rPr><t>x</t></r></si>' },
    ],
  ])('%s strikes nothing out', async (_what, book) => {
    expect(await readAll({ rows: titles + line(2, styled(five)), ...book })).toEqual([awa])
  })

  test('an empty cell that is struck out, and a title, are no doubt', async () => {
    const rows = titles.replace('<c', '<c s="1"') + lineOf({}, '<c s="1"/>')
    expect(await readAll({ rows, styles })).toEqual([awa])
  })
})

describe('a content in the colour of its background is not paid', () => {
  const amountIn = async (font: string, fill?: string) =>
    (await readAll({ rows: titles + line(2, styled(five)), styles: stylesOf(font, fill) }))[0]

  test.each<[string, string, string?]>([
    ['white', '<color rgb="FFFFFFFF"/>'],
    ['white in small letters', '<color rgb="ffffffff"/>', '<patternFill patternType="none"/>'],
    ['the white of a theme', '<color theme="0"/>'],
    ['the white of the old palette', '<color indexed="9"/>', solid('rgb="FFFFFFFF"')],
    ['white on the white of a theme', '<color rgb="FFFFFFFF"/>', solid('theme="0"')],
    ['red on red', '<color rgb="FFFF0000"/>', solid('rgb="FFFF0000"')],
    ['a shade on the same shade', '<color theme="4" tint="0.4"/>', solid('theme="4" tint="0.4"')],
    ['automatic on black', '', solid('rgb="FF000000"')],
  ])('%s', async (_what, font, fill) => {
    expect(await amountIn(font, fill)).toMatchObject({ amount: unseen })
  })

  test.each<[string, string, string?]>([
    ['black', '<color rgb="FF000000"/>'],
    ['automatic', '<color auto="1"/>'],
    ['white on blue', '<color theme="0"/>', solid('theme="4"')],
    ['a shade of white', '<color theme="0" tint="-0.35"/>'],
    ['white on a pattern', '<color rgb="FFFFFFFF"/>', '<patternFill patternType="darkGrid"/>'],
    [
      'white on a gradient',
      '<color rgb="FFFFFFFF"/>',
      '<gradientFill><stop position="0"><color rgb="FF0000FF"/></stop></gradientFill>',
    ],
  ])('%s is seen', async (_what, font, fill) => {
    expect(await amountIn(font, fill)).toEqual(awa)
  })

  test('a title in white may stand on a background that the table gives it', async () => {
    const rows = titles.replaceAll('<c', '<c s="1"') + line(2, five)
    expect(await readAll({ rows, styles: stylesOf('<color theme="0"/>') })).toEqual([awa])
  })

  test('an empty text is no content', async () => {
    const rows = titles + line(2, five).replace('</row>', `${styled(text(' '))}</row>`)
    expect(await readAll({ rows, styles: stylesOf('<color theme="0"/>') })).toEqual([awa])
  })
})

describe('a conditional format that may hide, alter or strike out a content refuses the file', () => {
  const why = 'that may hide, alter or strike out a content: remove it.'
  const sheetWith = (after: string) =>
    `<worksheet><sheetData>${titles}${line(2, five)}</sheetData>${after}</worksheet>`
  const rule =
    '<conditionalFormatting sqref="A1"><cfRule type="expression" dxfId="1"/></conditionalFormatting>'
  const dxfs = (format: string) => `<dxfs><dxf><font><b/></font></dxf><dxf>${format}</dxf></dxfs>`
  const inline = (format: string) =>
    `<extLst><ext><x14:cfRule xmlns:x14="x"><x14:dxf>${format}</x14:dxf></x14:cfRule></ext></extLst>`

  const hiding = [
    '<font><strike/></font>',
    '<font><color theme="0"/></font>',
    '<font><color rgb="FFFF0000"/></font><fill><patternFill><bgColor rgb="FFFF0000"/></patternFill></fill>',
    '<numFmt numFmtId="165" formatCode=";;;"/>',
    '<numFmt numFmtId="165" formatCode="#,##0,"/>',
  ]
  const shown = [
    '<font><color rgb="FF9C0006"/></font><fill><patternFill><bgColor rgb="FFFFC7CE"/></patternFill></fill>',
    '<font><color theme="0"/></font><fill><patternFill><bgColor theme="4"/></patternFill></fill>',
    '<fill><patternFill><bgColor rgb="FFFFFFFF"/></patternFill></fill>',
    '<font><strike val="0"/></font><numFmt numFmtId="165" formatCode="#,##0"/>',
  ]
  const books = (format: string): Workbook[] => [
    { styles: stylesOf('', '', dxfs(format)), sheet: sheetWith(rule) },
    { sheet: sheetWith(inline(format)) },
  ]

  test.each(hiding)('%s', async (format) => {
    for (const book of books(format)) {
      const refused = await readRecipients(workbook(book)).catch((error: unknown) => error)
      expect(refused).toBeInstanceOf(DomainError)
      const place = book.styles === undefined ? '' : ' in A1'
      expect((refused as DomainError).message).toBe(`file has a conditional format${place} ${why}`)
    }
  })

  test.each(['dataBar', 'iconSet'])('a %s in place of the number', async (what) => {
    const ruled = (value: string) =>
      sheetWith(
        `<conditionalFormatting sqref="C2"><cfRule><${what} showValue="${value}"/></cfRule>
        </conditionalFormatting>`,
      )
    await expect(readAll({ sheet: ruled('0') })).rejects.toThrow(`in C2 ${why}`)
    expect(await readAll({ sheet: ruled('1') })).toEqual([awa])
  })

  test.each(shown)('%s does not', async (format) => {
    for (const book of books(format)) expect(await readAll(book)).toEqual([awa])
  })

  describe('of a comparison', () => {
    const comparing = (more: string, formula: string, format: string): Workbook[] => [
      {
        styles: stylesOf('', '', dxfs(format)),
        sheet: sheetWith(
          `<conditionalFormatting sqref="C2:C99"><cfRule type="cellIs" dxfId="1" ${more}>
           <formula>${formula}</formula></cfRule></conditionalFormatting>`,
        ),
      },
      {
        sheet: sheetWith(
          inline(format)
            .replace('<x14:cfRule', `<x14:cfRule type="cellIs" ${more}`)
            .replace('<x14:dxf>', `<xm:f>${formula}</xm:f><x14:dxf>`)
            .replace('xmlns:x14="x"', 'xmlns:x14="x" xmlns:xm="y"'),
        ),
      },
    ]
    const white = '<font><color theme="0"/></font>'

    test('one that hides zeros hides no line that could be paid', async () => {
      for (const book of comparing('operator="equal"', '0', white)) expect(await readAll(book)).toEqual([awa])
    })

    test.each([
      ['another number', 'operator="equal"', '5000', white],
      ['a formula', 'operator="equal"', '0+C2', white],
      ['another comparison', 'operator="greaterThan"', '0', white],
      ['no comparison', '', '0', white],
      ['a zero that strikes out', 'operator="equal"', '0', '<font><strike/></font>'],
    ])('%s refuses the file', async (_what, more, formula, format) => {
      for (const book of comparing(more, formula, format)) await expect(readAll(book)).rejects.toThrow(why)
    })
  })

  test('nor does a hiding format that no condition names', async () => {
    const styles = stylesOf('', '', dxfs(hiding[0] ?? ''))
    expect(await readAll({ styles, sheet: sheetWith(rule.replace('"1"', '"0"')) })).toEqual([awa])
    expect(await readAll({ styles, sheet: sheetWith('') })).toEqual([awa])
  })
})
