import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { DomainError, type FieldProblem } from '../../src/shared/errors.ts'
import {
  amount,
  camelCase,
  email,
  exactText,
  invalidInput,
  lines,
  pageInput,
  phone,
  provider,
  readInput,
  reference,
  snakeCase,
  text,
  wholeNumber,
} from '../../src/shared/input.ts'

/** The problems of a value; none where it is accepted. */
function problemsOf(schema: z.ZodType, value: unknown): readonly FieldProblem[] {
  try {
    readInput(schema, value)
    return []
  } catch (error) {
    if (error instanceof DomainError && error.code === 'INVALID_INPUT') return error.detail.problems ?? []
    throw error
  }
}
const takes = (schema: z.ZodType, value: unknown) => problemsOf(schema, value).length === 0

describe('readInput', () => {
  const schema = z.object({
    name: text({ max: 3 }),
    rows: z.array(z.object({ sum: amount({ min: 1, max: 9 }) })),
  })

  test('a refusal lists every problem, with its field', () => {
    const value = { name: 'long', rows: [{ sum: 1 }, { sum: 0 }, {}] }
    expect(problemsOf(schema, value)).toEqual([
      { field: 'name', message: 'must have at most 3 characters' },
      { field: 'rows[1].sum', message: 'must be at least 1 XOF' },
      { field: 'rows[2].sum', message: 'is required' },
    ])
  })

  test('a refusal has its first problem as its message, in the words of REST', () => {
    expect(() => readInput(z.object({ customerPhone: phone }), {})).toThrow('customer_phone is required.')
  })

  test('a valid input becomes the output of the schema, without unknown fields', () => {
    expect(readInput(schema, { name: 'abc', rows: [{ sum: 9 }], more: 1 })).toEqual({
      name: 'abc',
      rows: [{ sum: 9n }],
    })
  })

  test('a refusal without problems has its default message', () => {
    expect(invalidInput([]).message).toBe('The request has missing or invalid fields.')
  })
})

describe('names', () => {
  test.each([
    ['customer_phone', 'customerPhone'],
    ['id', 'id'],
    ['expires_in_hours', 'expiresInHours'],
  ])('%s and %s are the same field', (snake, camel) => {
    expect(camelCase(snake)).toBe(camel)
    expect(snakeCase(camel)).toBe(snake)
  })

  test('any string can be converted', () => {
    fc.assert(
      fc.property(fc.string(), (name) => {
        expect(camelCase(name)).toBeTypeOf('string')
        expect(snakeCase(name)).not.toMatch(/[A-Z]/)
      }),
    )
  })
})

describe('text', () => {
  const name = text({ min: 1, max: 10 })

  test.each(['a', 'é', '10 letters', '😀'.repeat(10), 'a/b%c'])('accepts %j unchanged', (value) => {
    expect(readInput(name, value)).toBe(value)
  })

  test.each([
    ['', 'must not be empty'],
    ['   ', 'must not be empty'],
    ['11 letters.', 'must have at most 10 characters'],
    ['a\u0000', 'must not contain control or hidden characters'],
    ['a\u200b', 'must not contain control or hidden characters'],
    ['\ud800', 'must not contain control or hidden characters'],
    ['a\u2029b', 'must not contain control or hidden characters'],
    ['a\u202eb', 'must not contain control or hidden characters'],
    ['\u200d', 'must not be empty'],
    ['\u3164\ufe0f', 'must not be empty'],
    ['a\nb', 'must not contain control or hidden characters'],
    ['a\tb', 'must not contain control or hidden characters'],
    [undefined, 'is required'],
    [null, 'is required'],
    [7, 'must be text'],
    [['a'], 'must be text'],
  ])('refuses %j: %s', (value, message) => {
    expect(problemsOf(name, value).map((problem) => problem.message)).toContain(message)
  })

  test('an accepted text can be stored: whole characters, and no NUL', () => {
    const storable = (value: string) => value.isWellFormed() && !value.includes('\u0000')
    const halves = fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 8 })
    fc.assert(
      fc.property(halves, (units) => {
        const value = String.fromCharCode(...units)
        expect(storable(value) || !takes(name, value)).toBe(true)
      }),
    )
  })
})

/** Texts that people write with characters that a program does not see. */
const joined = {
  'an emoji of several people': '👩‍👩‍👧‍👦',
  'a flag of a country within a country': '🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}',
  'a heart with its colour': '❤️',
  'letters that must not be joined': 'می\u200cخواهم',
}

describe('texts for people', () => {
  test.each(Object.entries(joined))('take %s unchanged', (_words, value) => {
    expect(readInput(text({ min: 1, max: 20 }), value)).toBe(value)
    expect(readInput(lines({ min: 1, max: 20 }), value)).toBe(value)
  })

  test.each(Object.entries(joined))('a reference takes no %s', (_words, value) => {
    expect(takes(reference, value)).toBe(false)
  })

  test.each(['👩‍👩‍👧‍👦', 'می\u200cخواهم', 'a\nb'])('an exact text takes no %j', (value) => {
    expect(takes(exactText({ max: 20 }), value)).toBe(false)
  })

  test.each(['a\nb', 'a\r\nb', 'a\rb', 'a\u2028b', 'a\u2029b', 'a\u0085b', 'a\vb'])(
    'the line break of %j becomes that of Unix',
    (value) => expect(readInput(lines({ max: 20 }), value)).toBe('a\nb'),
  )

  test('a text of several lines keeps its tabs and empty lines, and counts a line break once', () => {
    expect(readInput(lines({ max: 20 }), '1\tsac\n\n2\tsacs')).toBe('1\tsac\n\n2\tsacs')
    expect(takes(lines({ max: 3 }), 'a\r\nb')).toBe(true)
  })

  test.each(['a\u0000', 'a\u001b[31m', 'a\u202eb', 'a\u200bb', 'a\ufeffb', '\ud83d', '\u{e0001}'])(
    'a text of several lines refuses %j',
    (value) => expect(takes(lines({ max: 20 }), value)).toBe(false),
  )

  test.each(['\n', '\t \r\n', '\u200d', ' \u00a0'])('%j is no content', (value) => {
    expect(takes(lines({ min: 1, max: 20 }), value)).toBe(false)
  })
})

describe('amount', () => {
  const collected = amount({ min: 100, max: 1_000_000 })

  test.each([100, 1_000_000, 5_000, 1e3, 100n, 1_000_000n])('takes %s as whole francs', (value) => {
    expect(readInput(collected, value)).toBe(BigInt(value))
  })

  test.each([
    ['5000', 'must be a number'],
    [true, 'must be a number'],
    [[5_000], 'must be a number'],
    [{ valueOf: () => 5_000 }, 'must be a number'],
    [1000.5, 'must be a whole number of francs: XOF has no minor unit'],
    [0.01, 'must be a whole number of francs: XOF has no minor unit'],
    [Number.NaN, 'must be a whole number of francs: XOF has no minor unit'],
    [Number.POSITIVE_INFINITY, 'must be a whole number of francs: XOF has no minor unit'],
    [99, 'must be at least 100 XOF'],
    [-5_000, 'must be at least 100 XOF'],
    [1_000_001, 'must be at most 1000000 XOF'],
    [2 ** 60, 'must be at most 1000000 XOF'],
    [10n ** 30n, 'must be at most 1000000 XOF'],
    [undefined, 'is required'],
    [null, 'is required'],
  ])('refuses %s: %s', (value, message) => {
    expect(problemsOf(collected, value)).toEqual([{ field: '', message }])
  })

  test('takes exactly the whole numbers within the bounds', () => {
    fc.assert(
      fc.property(fc.oneof(fc.double(), fc.integer(), fc.integer({ min: 90, max: 110 })), (value) => {
        const valid = Number.isInteger(value) && value >= 100 && value <= 1_000_000
        expect(takes(collected, value)).toBe(valid)
      }),
    )
  })
})

describe('wholeNumber', () => {
  const page = wholeNumber(0, 100)

  test.each([0, 100, '0', '100', '007'])('takes %j', (value) => {
    expect(readInput(page, value)).toBe(Number(value))
  })

  test.each([
    -1,
    101,
    1.5,
    '-1',
    '1.5',
    '1e1',
    '',
    ' 1',
    '0x1',
    'ten',
    null,
    true,
    [1],
    '99999999999999999999',
  ])('refuses %j', (value) => {
    expect(problemsOf(page, value)).toMatchObject([{ message: 'must be a whole number from 0 to 100' }])
  })

  test('a page has 20 rows from the beginning by default', () => {
    expect(readInput(pageInput, {})).toEqual({ limit: 20, offset: 0 })
  })
})

describe('provider', () => {
  test('BankTransfer gets another message than an unknown method', () => {
    expect(problemsOf(provider, 'BankTransfer')[0]?.message).toBe('BankTransfer is not supported here')
    expect(problemsOf(provider, 'Other')[0]?.message).toContain('OperatorA, OperatorB, OperatorC, OperatorD')
    expect(problemsOf(provider, undefined)[0]?.message).toBe('is required')
    expect(readInput(provider, 'OperatorC')).toBe('OperatorC')
  })
})

describe('other inputs', () => {
  test('a reference has 1 to 100 characters', () => {
    expect(takes(reference, 'r'.repeat(100))).toBe(true)
    expect(takes(reference, 'r'.repeat(101))).toBe(false)
    expect(takes(reference, '')).toBe(false)
  })

  test.each([
    ['awa@example.com', true],
    ['awa+shop@mail.example.com', true],
    ['awa', false],
    ['awa@', false],
    ['a b@example.com', false],
    [`${'a'.repeat(260)}@example.com`, false],
  ])('email %s: %s', (value, taken) => expect(takes(email, value)).toBe(taken))
})
