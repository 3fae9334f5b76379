import type { Readable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { deflateRawSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { ZipFile } from 'yauzl'
import { readRecipients } from '../../../src/http/import/recipients.ts'
import { DomainError } from '../../../src/shared/errors.ts'
import { importBounds } from '../../../src/http/import/bounds.ts'
import { limits } from '../../../src/shared/limits.ts'
import { turnBounds, yieldIfBusy } from '../../../src/shared/yield-if-busy.ts'
import { line, sheetOf, text, titles, workbook } from '../../kit/workbook.ts'
import { zipOf } from '../../../src/http/import/zip.ts'
import { useBounds } from '../../kit/use-bounds.ts'

/** Reads a hostile file. @returns the message of the refusal */
async function refusalOf(file: Buffer): Promise<string> {
  const refused = await readRecipients(file).catch((error: unknown) => error)
  expect(refused).toBeInstanceOf(DomainError)
  expect(refused).toMatchObject({ code: 'INVALID_INPUT' })
  return (refused as DomainError).message
}

/** Watches the parts of workbooks that are unpacked: whether each was read to its end, by its name. */
function watchParts() {
  const spy = vi.spyOn(ZipFile.prototype, 'openReadStreamPromise')
  onTestFinished(() => spy.mockRestore())
  return async () => {
    const streams = await Promise.all(spy.mock.results.map(({ value }) => value as Promise<Readable>))
    return Object.fromEntries(
      spy.mock.calls.map(([{ fileName }], n) => [fileName, streams[n]?.readableEnded]),
    )
  }
}

/** Counts the pieces of a table that are read within one turn of the event loop. @returns the most so far */
function watchPieces(): () => number {
  let [pieces, most] = [0, 0]
  const decode = Object.getOwnPropertyDescriptor(TextDecoder.prototype, 'decode')?.value
  const spy = vi.spyOn(TextDecoder.prototype, 'decode').mockImplementation(function (
    this: TextDecoder,
    ...given
  ) {
    if (given[1]?.stream) most = Math.max(most, (pieces += 1))
    return decode.apply(this, given)
  })
  let next = setImmediate(function turn() {
    pieces = 0
    next = setImmediate(turn)
  })
  onTestFinished(() => {
    clearImmediate(next)
    spy.mockRestore()
  })
  return () => most
}

// A busy machine reaches the bound for files that are refused for another reason.
useBounds(importBounds, { readMaxMs: 20 * importBounds.readMaxMs })

const sheet = 'xl/worksheets/sheet1.xml'
const five = '<c><v>5000</v></c>'
const validBook = workbook({ rows: titles + line(2, five) + line(3, five) })
const damaged = 'file is not an XLSX workbook, or is damaged: save it again.'
/** A workbook with a sheet of these rows, and the XML in front of it. */
const sheetBook = (rows: string, before = '') => workbook({ sheet: before + sheetOf(rows) })
const laugh = (n: number) => `<!ENTITY b${n} "${`&b${n - 1};`.repeat(10)}">`
const more = Array.from({ length: 20 }, (_, n) => laugh(n + 1)).join('')
const laughs = `<!DOCTYPE w [<!ENTITY b0 "ha">${more}]>`

describe('hostile workbooks', () => {
  test.each<[string, Buffer]>([
    ['billion laughs', sheetBook(titles + line(2, text('&b19;')), laughs)],
    ['a document type that defines no entity', sheetBook(titles + line(2, five), '<!DOCTYPE worksheet>')],
    ['an undefined entity', sheetBook(titles + line(2, text('&x;')))],
    ['lines that go back', workbook({ rows: titles + line(9, five) + line(2, five) })],
    ['the same line twice', workbook({ rows: titles + line(2, five) + line(2, five) })],
    ['a column beyond all', workbook({ rows: `<row>${text('nom', 'ZZZ1')}</row>` })],
    ['a text that is not there', workbook({ rows: `${titles}<row><c t="s"><v>7</v></c></row>` })],
    ['a number that is none', workbook({ rows: titles + line(2, '<c><v>5OOO</v></c>') })],
    ['no sheet', workbook({ sheets: '' })],
    ['a sheet elsewhere', workbook({ sheets: '<sheet r:id="r9"/>' })],
    ['XML that does not end', workbook({ sheet: '<worksheet><sheetData>' })],
    ['bytes that are no text', workbook({ sheet: 'x' }).fill(0xff, 400, 420)],
    ['another archive', workbook({}).subarray(0, 300)],
    ['one that breaks off', validBook.subarray(0, validBook.length - 30)],
    ['one without its beginning', Buffer.concat([Buffer.from('PK\x03\x04'), validBook.subarray(200)])],
  ])('%s', async (_what, file) => {
    expect(await refusalOf(file)).toBe(damaged)
  })

  test('a file that unpacks into more than 12 MiB is refused before it is unpacked', async () => {
    const blank = (bytes: number) => sheetBook(titles + ' '.repeat(bytes))
    const bomb = blank(importBounds.unpackedMaxBytes)
    expect(bomb.length).toBeLessThan(100_000)
    const parts = watchParts()
    expect(await refusalOf(bomb)).toContain('unpacks into more than 12 MiB')
    expect(await parts()).not.toHaveProperty([sheet])
    expect(await refusalOf(blank(importBounds.unpackedMaxBytes - 100_000))).toContain('file')
    expect(await parts()).toHaveProperty([sheet], true)
  })

  const styles = 'xl/styles.xml'
  const shared = 'xl/sharedStrings.xml'
  const attributes = (n: number) => Array.from({ length: n }, (_, at) => `a${at}=""`).join(' ')
  const marks = 'file has more than 1500000 tags, attributes and references in its XML'
  const marksOf = (sign: string) => sign.repeat(1_600_000 / sign.replaceAll(/[^<=&]/g, '').length)
  const merged = marksOf('<mergeCell ref="A3:XFD1048576"/>')
  test.each<[string, Parameters<typeof workbook>[0], string, string]>([
    [
      'texts',
      { texts: '<si><t>a</t></si>'.repeat(290_000) },
      'file has more than 200000 shared texts',
      shared,
    ],
    ['runs of one text', { texts: `<si>${marksOf('<r><t>a</t></r>')}</si>` }, marks, shared],
    ['references in a text', { texts: `<si><t>${marksOf('&#x41;')}</t></si>` }, marks, shared],
    ['references to letters', { texts: `<si><t>${marksOf('&lt;')}</t></si>` }, marks, shared],
    ['cells', { rows: titles + '<row><c/></row>'.repeat(370_000) }, 'file has more than 200000 cells', sheet],
    ['rows without a cell', { rows: titles + marksOf('<row/>') }, 'file has more than 1048576 lines', sheet],
    ['comments', { rows: titles + marksOf('<!---->') }, marks, sheet],
    ['instructions', { rows: titles + marksOf('<?a?>') }, marks, sheet],
    ['tags', { rows: titles + marksOf('<a/>') }, marks, sheet],
    ['attributes', { rows: titles + marksOf(`<a ${attributes(99)}/>`) }, marks, sheet],
    ['levels', { rows: '<a>'.repeat(1_000_000) }, 'file has more than 100 levels in its XML', sheet],
    [
      'attributes of one tag',
      { rows: `<row ${attributes(1_000_000)}/>` },
      'file has more than 100 attributes of one tag in its XML',
      sheet,
    ],
    [
      'letters of an attribute',
      { rows: `<row a="${'a'.repeat(1_000_000)}"/>` },
      'file has a name or a value longer than 64 KiB in its XML',
      sheet,
    ],
    ['styles', { styles: `<cellXfs>${marksOf('<xf a=""/>')}</cellXfs>` }, marks, styles],
    ['sheets', { sheets: marksOf('<sheet a=""/>') }, marks, 'xl/workbook.xml'],
  ])('more %s than a list may have are refused, not read to the end', async (_what, parts, words, part) => {
    const file = workbook({ rows: titles + line(2, five), ...parts })
    const unpacked = watchParts()
    expect(await refusalOf(file)).toContain(words)
    expect(await unpacked()).toHaveProperty([part], false)
  })

  test('merged cells of whole sheets take no room; too many are refused', async () => {
    const rows = titles + line(2, five)
    const merging = (cells: string) =>
      workbook({
        sheet: `<worksheet><sheetData>${rows}</sheetData><mergeCells>${cells}</mergeCells></worksheet>`,
      })
    const { recipients } = await readRecipients(merging('<mergeCell ref="A3:XFD1048576"/>'.repeat(1_000)))
    expect(recipients).toHaveLength(1)
    const many = merging('<mergeCell ref="D1:XFD1048576"/>'.repeat(150_000))
    expect(await refusalOf(many)).toContain('file has more than 1000000 merged cells')
    useBounds(importBounds, { unpackedMaxBytes: 2 * merged.length }, onTestFinished)
    expect(await refusalOf(merging(merged))).toContain(marks)
  })

  test('the parts of a workbook share its bound of tags, attributes and references', async () => {
    const half = '<!---->'.repeat(800_000)
    const parts = { rows: titles + line(2, five) + half }
    expect((await readRecipients(workbook(parts))).recipients).toHaveLength(1)
    expect(await refusalOf(workbook({ ...parts, styles: half }))).toContain(marks)
  })

  test('a content beyond the highest column is refused, and empty cells there are not counted', async () => {
    const at = (column: string, content: string) =>
      workbook({ rows: titles + line(2, five) + `<row r="3"><c r="${column}3" s="0">${content}</c></row>` })
    expect((await readRecipients(at('XFD', ''))).recipients).toHaveLength(1)
    expect((await readRecipients(at('ALL', '<v>1</v>'))).recipients).toHaveLength(2)
    expect(await refusalOf(at('ALM', '<v>1</v>'))).toContain('file has more than 1000 columns')
    expect(await refusalOf(at('XFD', '<v>1</v>'))).toContain('file has more than 1000 columns')
  })

  test('the last line that a sheet can have is read, and no line before it takes room', async () => {
    const { recipients, locate } = await readRecipients(workbook({ rows: titles + line(1_048_576, five) }))
    expect(recipients).toHaveLength(1)
    expect(locate({ field: 'recipients[0].amount', message: '' }).field).toBe('lines[1048576].amount')
  })

  test('an archive of more parts than a workbook may have is refused', async () => {
    const parts = Array.from({ length: importBounds.partsMax + 1 }, (_, n) => [`a${n}`, ''])
    expect(await refusalOf(zipOf(Object.fromEntries(parts)))).toContain(
      'file is an archive of more than 2000 parts',
    )
  })

  test('the highest allowed number of cells and shared texts is read', async () => {
    useBounds(importBounds, { cellsMax: 203, textsMax: 200 }, onTestFinished)
    const rowsOf = (cells: number) => `${titles}<row>${'<c t="s"><v>199</v></c>'.repeat(cells)}</row>`
    const textsOf = (texts: number) => '<si><t>a</t></si>'.repeat(texts)
    const { recipients } = await readRecipients(workbook({ rows: rowsOf(200), texts: textsOf(200) }))
    expect(recipients).toHaveLength(1)
    expect(await refusalOf(workbook({ rows: rowsOf(201), texts: textsOf(200) }))).toContain('203 cells')
    expect(await refusalOf(workbook({ rows: rowsOf(200), texts: textsOf(201) }))).toContain(
      '200 shared texts',
    )
  })

  test('a file that takes too long to read is refused, not read to the end', async () => {
    useBounds(importBounds, { readMaxMs: 0 }, onTestFinished)
    const slow = workbook({ rows: `${titles}${'<?a?>'.repeat(1_000_000)}` })
    const parts = watchParts()
    expect(await refusalOf(slow)).toContain('file takes too long to read')
    // The smaller parts before the sheet may already take more time than none.
    expect(await parts()).not.toHaveProperty([sheet], true)
  })

  test('an archive that declares less than its real size is refused', async () => {
    const book = sheetBook(titles + line(2, five))
    // The part's own size, in the directory, behind the packed one.
    const packed = deflateRawSync(sheetOf(titles + line(2, five))).length
    const at = book.lastIndexOf('xl/worksheets/sheet1.xml') - 22
    expect(book.readUInt32LE(at - 4)).toBe(packed)
    book.writeUInt32LE(10, at)
    expect(await refusalOf(book)).toBe(damaged)
  })

  test('an amount that was changed on its way is noticed', async () => {
    const rows = titles + line(2, five)
    const book = workbook({ rows })
    const sum = book.lastIndexOf('xl/worksheets/sheet1.xml') - 30
    book.writeUInt32LE((book.readUInt32LE(sum) ^ 1) >>> 0, sum)
    expect(await refusalOf(book)).toBe(damaged)
  })

  test('a million empty rows are skipped while other work has its turns', async () => {
    const rows = titles + '<row/>'.repeat(900_000) + '<row>x</row>'
    let turns = 0
    const timer = setInterval(() => (turns += 1), 1)
    expect(await refusalOf(workbook({ rows }))).toContain('file has no recipients')
    clearInterval(timer)
    expect(turns).toBeGreaterThan(20)
  })
})

describe('hostile tables', () => {
  test.each<[string, string, string]>([
    ['nothing but separators', ';'.repeat(limits.recipientsBodyMaxBytes), 'file has no recipients'],
    ['nothing but letters', 'a'.repeat(limits.recipientsBodyMaxBytes), 'lines[1] is too long'],
    ['nothing but quotation marks', '"'.repeat(limits.recipientsBodyMaxBytes), 'lines[1] is too long'],
    ['nothing but line breaks', '\n'.repeat(limits.recipientsBodyMaxBytes), 'file has no recipients'],
    [
      'lines of every length',
      ';\n'.repeat(limits.recipientsBodyMaxBytes / 2),
      'file has more than 50000 lines',
    ],
  ])('%s: other work has a turn after each piece that is read', async (_what, table, words) => {
    useBounds(turnBounds, { sliceMs: 0 }, onTestFinished)
    // The slice of the test before may not be over.
    while (!yieldIfBusy()) await nextTurn()
    await nextTurn()
    const pieces = watchPieces()
    expect(await refusalOf(Buffer.from(table))).toContain(words)
    expect(pieces()).toBe(1)
  })
})

test('a changed file is read, or refused with a message', async () => {
  const table = Buffer.from('nom;numéro;montant\r\nAwa;70000001;5 000\r\n"Fanta";70000002;7500 F CFA\r\n')
  const change = fc.record({
    file: fc.constantFrom(validBook, table),
    changes: fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 8 }),
    end: fc.option(fc.nat(), { freq: 4 }),
  })
  await fc.assert(
    fc.asyncProperty(fc.oneof(change, fc.uint8Array({ maxLength: 300 })), async (given) => {
      let file = Buffer.from('file' in given ? given.file : given)
      if ('file' in given) {
        for (const [at, value] of given.changes) file[at % file.length] = value
        if (given.end !== null) file = file.subarray(0, given.end % file.length)
      }
      const { recipients } = await readRecipients(file).catch((error: unknown) => {
        if (error instanceof DomainError && error.code === 'INVALID_INPUT') return { recipients: [] }
        throw error
      })
      for (const { amount } of recipients) expect(amount).not.toBeNaN()
    }),
    { numRuns: 1_500 },
  )
})
