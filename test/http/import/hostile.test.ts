import type { Readable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { deflateRawSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { ZipFile } from 'yauzl'
import { readRecipients } from '../../../src/http/import/recipients.ts'
import { DomainError } from '../../../src/shared/errors.ts'
import { importBounds } from '../../../src/http/import/xml.ts'
import { limits } from '../../../src/shared/limits.ts'
import { turnBounds, yieldIfBusy } from '../../../src/shared/yield-if-busy.ts'
import { line, sheetOf, text, titles, workbook } from '../../kit/workbook.ts'
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
    ['a million levels', sheetBook('<a>'.repeat(1_000_000) + '</a>'.repeat(1_000_000))],
    [
      'a million attributes',
      sheetBook(`<row ${Array.from({ length: 1_000_000 }, (_, n) => `a${n}=""`).join(' ')}/>`),
    ],
    ['an attribute of a million letters', sheetBook(`<row a="${'a'.repeat(1_000_000)}"/>`)],
    ['lines that go back', workbook({ rows: titles + line(9, five) + line(2, five) })],
    ['the same line twice', workbook({ rows: titles + line(2, five) + line(2, five) })],
    ['a line beyond all', workbook({ rows: titles + line(1e9, five) })],
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

  test('a file that unpacks into more than 32 MiB is refused before it is unpacked', async () => {
    const blank = (bytes: number) => sheetBook(titles + ' '.repeat(bytes))
    const bomb = blank(limits.importUnpackedMaxBytes)
    expect(bomb.length).toBeLessThan(100_000)
    const parts = watchParts()
    expect(await refusalOf(bomb)).toContain('unpacks into more than 32 MiB')
    expect(await parts()).not.toHaveProperty([sheet])
    expect(await refusalOf(blank(limits.importUnpackedMaxBytes - 100_000))).toContain('file')
    expect(await parts()).toHaveProperty([sheet], true)
  })

  const many = limits.importCellsMax + 1
  test.each<[string, Buffer, string, string]>([
    [
      'texts that cells share',
      workbook({ rows: titles + line(2, five), texts: '<si><t>a</t></si>'.repeat(1_800_000) }),
      'file has more than 200000 shared texts',
      'xl/sharedStrings.xml',
    ],
    [
      'cells',
      workbook({ rows: titles + `<row>${'<c/>'.repeat(1_000)}</row>`.repeat(Math.ceil(many / 1_000)) }),
      'file has more than 200000 cells',
      sheet,
    ],
  ])('more %s than a list may have are refused, not read to the end', async (_what, file, words, part) => {
    expect(file.length).toBeLessThan(100_000)
    const parts = watchParts()
    expect(await refusalOf(file)).toContain(words)
    expect(await parts()).toHaveProperty([part], false)
  })

  test('the highest allowed number of cells and shared texts is read', async () => {
    useBounds<{ importCellsMax: number; importTextsMax: number }>(
      limits,
      { importCellsMax: 203, importTextsMax: 200 },
      onTestFinished,
    )
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
    useBounds(importBounds, { readMaxMs: 200 }, onTestFinished)
    const slow = workbook({ rows: `${titles}${'<?a?>'.repeat(6_000_000)}` })
    const parts = watchParts()
    expect(await refusalOf(slow)).toContain('file takes too long to read')
    expect(await parts()).toHaveProperty([sheet], false)
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
