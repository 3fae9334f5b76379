import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { oneLine } from '../../src/operators/one-line.ts'

describe('oneLine', () => {
  test.each([
    ['Commande 1042', 'Commande 1042'],
    ['Commande 1042\n2 sacs\n', 'Commande 1042 2 sacs'],
    ['1\tsac\n\n2\tsacs', '1 sac 2 sacs'],
    [' \n', ''],
    ['', ''],
    ['x'.repeat(41), 'x'.repeat(40)],
    [`${'x'.repeat(39)}😀`, 'x'.repeat(39)],
    [`${'x'.repeat(38)}😀`, `${'x'.repeat(38)}😀`],
    [`${'x'.repeat(35)}👩‍👩‍👧‍👦`, 'x'.repeat(35)],
    [`${'x'.repeat(39)}e\u0301`, 'x'.repeat(39)],
    [`e${'\u0301'.repeat(60)}`, ''],
  ])('%j becomes %j', (text, line) => expect(oneLine(text, 40)).toBe(line))

  test('the result fits, is one line, and has no half of a character', () => {
    const words = fc.string({ unit: 'binary', minLength: 30, maxLength: 80 })
    fc.assert(
      fc.property(words, (text) => {
        const line = oneLine(`x${text}`, 40)
        expect(line.length <= 40 && line.isWellFormed() && !/[\n\r\t\u2028]/.test(line)).toBe(true)
      }),
    )
  })
})
