import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { exactNumber } from '../../src/shared/exact-number.ts'
import { readJson } from '../../src/shared/json-body.ts'

describe('exactNumber', () => {
  test('the result is whole exactly where the text is, however many digits and powers of ten', () => {
    const digits = fc.string({
      unit: fc.constantFrom(...'0123456789'.split('')),
      minLength: 1,
      maxLength: 30,
    })
    fc.assert(
      fc.property(digits, digits, fc.integer({ min: -40, max: 40 }), (whole, fraction, power) => {
        const text = `${whole}.${fraction}e${power}`
        // The text is whole if its digits, as one integer, are a multiple of a power of ten.
        const shift = BigInt(fraction.length - power)
        const isWhole = shift <= 0n || BigInt(whole + fraction) % 10n ** shift === 0n
        expect([text, Number.isInteger(exactNumber(text))]).toEqual([text, isWhole])
        expect(Number.isInteger(exactNumber(`-${text}`))).toBe(isWhole)
      }),
      { numRuns: 2_000 },
    )
  })

  test.each(['a', '1e', '--1', '1.2.3', '0x1g'])('%j is no number', (text) => {
    expect(exactNumber(text)).toBeNaN()
  })

  test('a long run of zeros takes no quadratic time', () => {
    expect(Number.isInteger(exactNumber(`1.${'0'.repeat(500_000)}1`))).toBe(false)
  })
})

describe('readJson', () => {
  const read = (json: string) => readJson(Buffer.from(json))

  test.each([
    ['{"a": 99.99999999999999999}', { a: 99.99999999999997 }],
    ['[1000000.00000000001, 5000.0, 5e3]', [999_999.9999999998, 5_000, 5_000]],
    ['99.99999999999999999', 99.99999999999997],
    ['[9007199254740993, 1e400, -0, 0.1e1, 0e-9]', [2 ** 53, Number.POSITIVE_INFINITY, -0, 1, 0]],
    ['{"a": "1, 99.99999999999999999", "b": 1.5e-7}', { a: '1, 99.99999999999999999', b: 1.5e-7 }],
    [
      '{"a": "\\", 1e-400 [99.99999999999999999", "b": -1e-400}',
      { a: expect.any(String), b: expect.any(Number) },
    ],
    ['{"__proto__": {"a": 1}, "b": 1}', JSON.parse('{"__proto__": {"a": 1}, "b": 1}')],
  ])('%s', (json, value) => expect(read(json)).toEqual(value))

  test('a text that only looks like such numbers is unchanged', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const json = JSON.stringify({ value, text: ', 99.99999999999999999 [1e-400' })
        expect(read(json)).toEqual(JSON.parse(json))
      }),
    )
  })
})
