import { expect, test } from 'vitest'
import { readId, readSmallId } from '../../src/shared/ids.ts'

const global = (text: string) => Buffer.from(text).toString('base64')

test.each<[string, string, bigint]>([
  ['the id in REST', '12', 12n],
  ['the global id', global('Payout:12'), 12n],
  ['the greatest', '999999999999999999', 999_999_999_999_999_999n],
  ['a global id of another type', global('Transaction:12'), -1n],
  ['an id without a row', global('Payout:12:1'), -1n],
  ['a number beyond all ids', '9999999999999999999', -1n],
  ['a global id with a leading zero', global('Payout:012'), -1n],
  ['a global id within a global id', global(`Payout:${global('Payout:12')}`), -1n],
  ['a global id without its padding', global('Payout:1').replace(/=+$/, ''), -1n],
  ['a negative number', '-12', -1n],
  ['rubbish', '%%%', -1n],
  ['nothing', '', -1n],
])('%s', (_name, given, id) => {
  expect(readId('Payout', given)).toBe(id)
})

test('a table with smaller ids has no greater ones', () => {
  expect([
    readSmallId('Batch', '2147483647'),
    readSmallId('Batch', '2147483648'),
    readSmallId('Batch', global('Batch:12')),
  ]).toEqual([2_147_483_647, -1, 12])
})
