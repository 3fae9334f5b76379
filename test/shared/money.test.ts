import { expect, test } from 'vitest'
import { currency, formatXof } from '../../src/shared/money.ts'

/** Intl uses narrow and unbreakable spaces. */
const plain = (words: string) => words.replaceAll(/\s/g, ' ')

test('the only currency is XOF', () => {
  expect(currency).toBe('XOF')
})

test.each([
  [5_000n, '5 000 F CFA'],
  [0n, '0 F CFA'],
  [1_000_000, '1 000 000 F CFA'],
  [-250n, '-250 F CFA'],
  [9_007_199_254_740_993n, '9 007 199 254 740 993 F CFA'],
])('%s francs in French: %s', (amount, words) => {
  expect(plain(formatXof(amount))).toBe(words)
})

test('in English', () => {
  expect(plain(formatXof(5_000n, 'en'))).toBe('XOF 5,000')
})
