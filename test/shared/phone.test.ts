import fc from 'fast-check'
import { parsePhoneNumberFromString } from 'libphonenumber-js/mobile'
import { describe, expect, test } from 'vitest'
import { parseContactPhone, parsePhone } from '../../src/shared/phone.ts'

describe('parsePhone', () => {
  test.each([
    '70000001',
    '70 00 00 01',
    '70-00-00-01',
    '70.00.00.01',
    '(70) 00 00 01',
    '+22370000001',
    '+223 70 00 00 01',
    '22370000001',
    '223 70 00 00 01',
    '0022370000001',
    '00223 70 00 00 01',
    ' 70000001 ',
    '\u202a+223 70 00 00 01\u202c',
    '\u2066+223\u00a070\u00a000\u00a000\u00a001\u2069',
    '\ufeff70000001\u200b',
    '\u200e70\u200f00\u206000\u00ad01\u061c',
    '70\u201000\u201100\u201201',
    '70\u201300\u201400\u201501',
    '+223\u221270\u221200\u221200\u221201',
    '70\uff0d00\ufe5800\ufe6301',
    `\u202a${'\u200b'.repeat(40)}70 00 00 01`,
  ])('reads %j', (writing) => expect(parsePhone(writing)).toBe('+22370000001'))

  test.each(['50', '60', '65', '70', '76', '79', '82', '90', '99'])(
    'knows numbers that begin with %s',
    (range) => {
      expect(parsePhone(`${range}123456`)).toBe(`+223${range}123456`)
    },
  )

  test.each([
    '',
    '7',
    '7000000',
    '700000011',
    '+2237000000',
    '+223700000011',
    '20212223',
    '+33612345678',
    '+22501020304',
    '0033612345678',
    '7000000a',
    '+223+70000001',
    '70000001;ext=5',
    'tel:70000001',
    '٧٠٠٠٠٠٠١',
    '+',
    '00',
    '7'.repeat(33),
    '7000000\u200b',
    '\u202a\u202c',
    '70\u000000001',
    '70\u00a0\u00b700\u00b700\u00b701',
  ])('refuses %j', (writing) => expect(parsePhone(writing)).toBeNull())

  test('the reader accepts all numbers that the whole of libphonenumber accepts', () => {
    const writing = fc
      .tuple(fc.constantFrom('', '+223', '00223', '223', '+', '00', '0', '+33', '+223 ('), fc.nat(99_999_999))
      .map(([prefix, number]) => `${prefix}${number}`)
    const noise = fc.string({ unit: fc.constantFrom(...'0123456789+ -().'.split('')), maxLength: 20 })
    fc.assert(
      fc.property(fc.oneof(writing, noise), (text) => {
        // The library ignores a plus behind a number; here it makes the number invalid.
        fc.pre(!/\d.*\+/.test(text))
        expect([text, parsePhone(text)]).toEqual([text, readByLibrary(text)])
      }),
      { numRuns: 3_000 },
    )
  })

  test('each prefix of four digits is mobile here exactly where it is mobile in the library', () => {
    const numbers = Array.from({ length: 10_000 }, (_none, begin) => `${begin}`.padStart(4, '0') + '1234')
    expect(numbers.filter((number) => parsePhone(number) !== null)).toEqual(
      numbers.filter((number) => readByLibrary(`+223${number}`) !== null),
    )
  })

  test('an accepted number is E.164 of Mali, and reads as itself', () => {
    const digits = fc.string({ unit: fc.constantFrom(...'0123456789+ -().'.split('')), maxLength: 20 })
    fc.assert(
      fc.property(digits, (writing) => {
        const number = parsePhone(writing)
        if (number === null) return
        expect(number).toMatch(/^\+223\d{8}$/)
        expect(parsePhone(number)).toBe(number)
      }),
      { numRuns: 1_000 },
    )
  })
})

function readByLibrary(text: string): string | null {
  const digits = text.replace(/[^\d+]/g, '')
  const international = digits.replace(/^00/, '+').replace(/^223(?=\d{8}$)/, '+223')
  const parsed = parsePhoneNumberFromString(international, 'ML')
  return parsed?.country === 'ML' && parsed.isValid() ? parsed.number : null
}

describe('parseContactPhone', () => {
  test.each([
    ['76 12 34 56', '+22376123456'],
    ['20 22 33 44', '+22320223344'],
    ['(+223) 20-22-33-44', '+22320223344'],
    ['0022376123456', '+22376123456'],
    ['22376123456', '+22376123456'],
    ['+33 1 42 68 53 00', '+33142685300'],
    ['0033142685300', '+33142685300'],
    ['\u202a+223 76 12 34 56\u202c', '+22376123456'],
  ])('reads %j as %s', (writing, number) => expect(parseContactPhone(writing)).toBe(number))

  test.each([
    '',
    '12 34 56 78',
    '7612345',
    '761234567',
    '33142685300',
    '+223 7612345',
    '+22376123456789',
    '+0142685300',
    '+1234567890123456',
    'call 76123456',
    '76123456;76123457',
  ])('refuses %j', (writing) => expect(parseContactPhone(writing)).toBeNull())
})
