import { expect, test } from 'vitest'
import { csvHead, csvLines } from '../../src/http/csv.ts'

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
  ['a formula behind a tab', '\t=1', "'\t=1"],
  ['a formula behind a return', '\r=1', '"\'\r=1"'],
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
