import { expect, test } from 'vitest'
import { wordMeantBy } from '../../src/shared/near-spelling.ts'

const words = ['customer_phone', 'amount', 'OperatorA', 'OperatorB', 'XOF']

test.each([
  ['customerPhone', 'customer_phone'],
  ['customer-phone', 'customer_phone'],
  ['CUSTOMER PHONE', 'customer_phone'],
  ['custommer_phone', 'customer_phone'],
  ['custmer_phone', 'customer_phone'],
  ['custoner_phone', 'customer_phone'],
  ['cutsomer_phone', 'customer_phone'],
  ['amounts', 'amount'],
  ['operatora', 'OperatorA'],
  ['operator_b', 'OperatorB'],
  ['xof', 'XOF'],
])('%j means %s', (given, word) => {
  expect(wordMeantBy(given, words)).toBe(word)
})

test.each([
  '',
  'XAF',
  'Operator',
  'OperatorZ',
  'phone',
  'account',
  'amount_xof',
  'reference',
  'é',
  'customerPhone'.repeat(100),
])('%j means none of the words', (given) => {
  expect(wordMeantBy(given, words)).toBe(null)
})
