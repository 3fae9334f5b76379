import { isUtf8 } from 'node:buffer'
import { Readable } from 'node:stream'
import { CsvError, type Info, parse } from 'csv-parse'
import { invalidInput } from '../../shared/input.ts'
import { yieldIfBusy } from '../../shared/yield-if-busy.ts'
import { importBounds } from './bounds.ts'
import { fileProblem, type TableRow } from './row.ts'

/**
 * Reads the lines of a CSV file as spreadsheets of any language write it: separated by commas, semicolons or
 * tabs, in UTF-8, UTF-16 or Windows-1252.
 * @throws DomainError INVALID_INPUT that names the line, or the file
 */
export async function* csvRows(file: Buffer): AsyncGenerator<TableRow, void> {
  const encoding = encodingOf(file)
  const head = new TextDecoder(encoding).decode(file.subarray(0, importBounds.lineMaxBytes)).trimStart()
  // A file that a web page offers as a spreadsheet is often an HTML page.
  if (head.startsWith('<')) throw fileProblem(`is a web page, not a table: ${expected}`)
  const parser = parse({
    delimiter: delimiterOf(head),
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
      if (line > importBounds.linesMax) {
        throw fileProblem(`has more than ${importBounds.linesMax} lines: delete the empty ones`)
      }
      if (record.some((cell) => cell.trim() !== '')) yield { line, cells: record, isHidden: false }
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    const field = `lines[${lineOf(parser.info) + 1}]`
    throw invalidInput([{ field, message: 'is too long, or has a quotation mark that is not closed' }])
  }
}

/** The advice on the file to send, as a part of a sentence. */
export const expected = 'send the table as CSV or XLSX'

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
 * plain CSV.
 */
function encodingOf(file: Buffer): string {
  if (file[0] === 0xff && file[1] === 0xfe) return 'utf-16le'
  if (file.includes(0)) throw fileProblem(`is not a table: ${expected}`)
  return isUtf8(file) ? 'utf-8' : 'windows-1252'
}

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
