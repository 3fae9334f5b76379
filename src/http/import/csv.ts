import { isUtf8 } from 'node:buffer'
import { Readable } from 'node:stream'
import { CsvError, type Info, parse } from 'csv-parse'
import { invalidInput } from '../../shared/input.ts'
import { yieldIfBusy } from '../../shared/yield-if-busy.ts'
import { importBounds } from './bounds.ts'
import { expected, fileProblem, type TableRow } from './row.ts'

/**
 * Reads the lines of a CSV file as spreadsheets of any language write it: separated by commas, semicolons or
 * tabs, in UTF-8, UTF-16 or Windows-1252.
 * @throws DomainError INVALID_INPUT that names the line, or the file
 */
export async function* csvRows(file: Buffer): AsyncGenerator<TableRow, void> {
  const encoding = encodingOf(file)
  const isDamaged = encoding === 'utf-8' && !isUtf8(file)
  const start = new TextDecoder(encoding).decode(file.subarray(0, importBounds.lineMaxBytes))
  const [declaration = '', declared] = /^sep=([,;\t])(?:\r\n|\r|\n)/i.exec(start) ?? []
  const head = start.slice(declaration.length).trimStart()
  // A file that a web page offers as a spreadsheet is often an HTML page.
  if (head.startsWith('<')) throw fileProblem(`is a web page, not a table: ${expected}`)
  const parser = parse({
    delimiter: declared ?? delimiterOf(head),
    record_delimiter: ['\r\n', '\n', '\r'],
    relax_column_count: true,
    relax_quotes: true,
    skip_empty_lines: true,
    max_record_size: importBounds.lineMaxBytes,
    info: true,
  })
  try {
    const lines: AsyncIterable<Line> = Readable.from(piecesOf(file, encoding)).pipe(parser)
    for await (const { record, info } of lines) {
      const line = lineOf(info)
      // Excel reads this line as a declaration of the separator, and shows it to people as no line.
      if (declared !== undefined && line === 1) continue
      if (isDamaged && record.some((cell) => cell.includes('\ufffd'))) {
        const message = 'has a letter that is not UTF-8: correct it, or save the table as CSV UTF-8'
        throw invalidInput([{ field: `lines[${line}]`, message }])
      }
      if (line > importBounds.linesMax) {
        throw fileProblem(`has more than ${importBounds.linesMax} lines: delete the empty ones`)
      }
      if (record.some((cell) => cell.trim() !== '')) yield { line, cells: record, unusable: null }
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    const field = `lines[${lineOf(parser.info) + 1}]`
    throw invalidInput([{ field, message: 'is too long, or has a quotation mark that is not closed' }])
  }
}

interface Line {
  record: string[]
  info: Info
}

/**
 * Returns the number of a line as a spreadsheet shows it: a line break within quotes is part of its line, and
 * empty lines count.
 */
function lineOf({ records, empty_lines }: Info): number {
  return records + empty_lines
}

/**
 * Finds the encoding. Excel writes UTF-16 for "Unicode text", UTF-8 for "CSV UTF-8", and Windows-1252 for a
 * plain CSV. A file with letters in UTF-8 is UTF-8 even where some bytes are wrong: Windows-1252 would turn
 * each of its accents into two other letters.
 */
function encodingOf(file: Buffer): string {
  if (file[0] === 0xff && file[1] === 0xfe) return 'utf-16le'
  if (file[0] === 0xfe && file[1] === 0xff) return 'utf-16be'
  if (file.includes(0)) throw fileProblem(`is not a table: ${expected}`)
  return isUtf8(file) || hasUtf8Letter.test(file.toString('latin1')) ? 'utf-8' : 'windows-1252'
}

/** A letter of two or three bytes, each as one sign. */
const hasUtf8Letter = /[\xc3-\xdf][\x80-\xbf](?![\x80-\xbf])|[\xe1-\xef][\x80-\xbf]{2}(?![\x80-\xbf])/

/**
 * Returns the separator: the comma, semicolon or tab that is most frequent in the first line, outside of
 * quotes.
 */
function delimiterOf(head: string): string {
  const [first = ''] = head.replaceAll(/"[^"]*"/g, '').split(/[\r\n]/, 1)
  const often = (separator: string) => first.split(separator).length
  return [',', ';', '\t'].reduce((most, other) => (often(other) > often(most) ? other : most))
}

/** Decodes the file in small pieces, so that other work can run between them. */
async function* piecesOf(file: Buffer, encoding: string): AsyncGenerator<string, void> {
  const decoder = new TextDecoder(encoding)
  for (let at = 0; at < file.length; at += pieceBytes) {
    const text = decoder.decode(file.subarray(at, at + pieceBytes), { stream: true })
    if (text !== '') yield text
    await yieldIfBusy()
  }
  const rest = decoder.decode()
  if (rest !== '') yield rest
}

/** Choice: some milliseconds of work for any content. */
const pieceBytes = 4 * 1_024
