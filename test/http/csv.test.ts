import { expect, test } from 'vitest'
import { csvHead, csvLines, typedText } from '../../src/http/csv.ts'

const columns = [
  { name: 'typed', isText: true },
  { name: 'ours', isText: false },
]

test('the first line names the columns', () => {
  expect(csvHead(columns)).toBe('typed,ours\r\n')
})

test.each<[string, string | null, string]>([
  ['plain text', 'order 7', 'order 7'],
  ['nothing', null, ''],
  ['a comma', 'a,b', '"a,b"'],
  ['a quotation mark', 'say "yes"', '"say ""yes"""'],
  ['a line break', 'a\nb', '"a\nb"'],
  ['a formula', '=1+1', "'=1+1"],
  ['a formula behind a plus', '+A1', "'+A1"],
  ['a formula behind a minus', '-A1', "'-A1"],
  ['a formula behind an at', '@SUM(A1)', "'@SUM(A1)"],
  ['a formula behind a tab', '\t=1', "'\t'=1"],
  ['a formula behind a return', '\r=1', '"\'\r\'=1"'],
  ['a text behind a tab', '\tAwa', "'\tAwa"],
  ['a formula behind a typed apostrophe', "'=1", "''=1"],
  ['an apostrophe of a name', "'Awa", "'Awa"],
  ['a formula with a comma', '=A(1,2)', '"\'=A(1,2)"'],
  ['a sign inside', 'a=1', 'a=1'],
  ['a formula behind a semicolon, where French spreadsheets begin a cell', 'Awa;=1+1', "Awa;'=1+1"],
  ['a formula behind a semicolon, a space and a quotation mark', 'Awa; "@A1', `"Awa;' ""@A1"`],
  ['a formula on a second line', 'Awa\n=1+1', `"Awa\n'=1+1"`],
  ['a semicolon inside', 'Awa; Binta', 'Awa; Binta'],
])("%s in a customer's text is made harmless", (_what, typed, written) => {
  expect(csvLines(columns, [[typed, 'x']])).toBe(`${written},x\r\n`)
})

test('our own values are unchanged: numbers, signs, phones, times', () => {
  const cells = [-5n, '+22370000001', new Date('2026-01-31T10:00:00Z'), true, 1.5, null]
  const rows = cells.map((cell) => ['a', cell])
  expect(csvLines(columns, rows).split('\r\n')).toEqual([
    'a,-5',
    'a,+22370000001',
    'a,2026-01-31T10:00:00.000Z',
    'a,true',
    'a,1.5',
    'a,',
    '',
  ])
})

const letters = Array.from({ length: 0x10000 }, (_, code) => String.fromCharCode(code))
/** The signs that begin a formula, in each form that Unicode holds compatible with them, and the minus. */
const signs = [...letters.filter((letter) => '=+-@'.includes(letter.normalize('NFKC'))), '\u2212']
/** The characters that programs strip from the beginning of a cell. */
const strippedCodes = [
  [0, 0x1f],
  [0x7f, 0x9f],
  ...[
    0xad, 0x34f, 0x61c, 0x115f, 0x1160, 0x17b4, 0x180e, 0x3164, 0xfeff, 0xffa0, 0xfff9, 0xe0001, 0xe0020,
  ].map((code) => [code, code]),
  [0x200b, 0x200f],
  [0x202a, 0x202e],
  [0x2060, 0x206f],
  [0xfe00, 0xfe0f],
].flatMap(([from = 0, to = 0]) => Array.from({ length: to - from + 1 }, (_, at) => from + at))
const stripped = [
  ...letters.filter((letter) => letter.trim() === ''),
  ...strippedCodes.map((code) => String.fromCodePoint(code)),
]

const written = (typed: string) => csvLines(columns, [[typed, null]]).replace(/,\r\n$/, '')
/** The text of a cell as a spreadsheet reads it from the file. */
const read = (cell: string) => (cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : cell)

test('a formula is made harmless behind every character that programs strip, and behind two of them', () => {
  expect(signs).toEqual(expect.arrayContaining(['=', '＝', '＋', '－', '＠', '﹣', '\u2212']))
  expect(stripped).toEqual(expect.arrayContaining([' ', '\t', '\u00a0', '\u3000', '\u200b', '\ufeff', '\0']))
  const harmful: string[] = []
  for (const sign of signs) {
    for (const first of ['', ...stripped]) {
      for (const second of ['', ' ', '\u200b', first]) {
        const typed = `${first}${second}${sign}1`
        if (!read(written(typed)).startsWith("'") || typedText(read(written(typed))) !== typed) {
          harmful.push(JSON.stringify(typed))
        }
      }
    }
  }
  expect(harmful).toEqual([])
})

test('no part of a text begins a formula where a program splits it, and the typed text is read again', () => {
  const alphabet = ['a', '=', '＋', ';', "'", '"', ' ', '\t', '\n']
  let texts = ['']
  const wrong: string[] = []
  for (let length = 1; length <= 5; length++) {
    texts = texts.flatMap((text) => alphabet.map((letter) => text + letter))
    for (const typed of texts) {
      const cell = read(written(typed))
      const runs = cell.split(/[;\t\n]/).some((part) => /^[\s"]*[=＋]/.test(part))
      if (runs || typedText(cell) !== typed) wrong.push(JSON.stringify(typed))
    }
  }
  expect(wrong).toEqual([])
})
