import { expect, test } from 'vitest'
import type { Posting } from '../../src/simulator/book.ts'
import { addUp, Book, fees, issuer, pool, wallet } from '../../src/simulator/book.ts'
import type { JournalEntry } from '../../src/simulator/model.ts'

const customer = wallet('+22376000001')

function posting(amount: string, from = customer, to = pool): Posting {
  return { operator: 'a', at: 1, type: 'collect', operationId: 'X', transfers: [{ from, to, amount }] }
}

/** A book of operator A with two accounts, and the sums of the entries that it takes. */
function opened() {
  const book = new Book()
  const sums = new Map<string, bigint>()
  const apply = (entry: JournalEntry) => {
    book.apply(entry)
    addUp(sums, entry)
  }
  for (const account of [pool, customer]) for (const entry of book.opening('a', account, 1)) apply(entry)
  return {
    book,
    apply,
    lastLine: () => [...book.poolLines('a')].at(-1),
    problems: () => book.verify('a', sums),
  }
}

test('accounts open once, and a movement changes both sides and the statement', () => {
  const { book, apply, lastLine, problems } = opened()
  expect(book.opening('a', customer, 2)).toEqual([])
  for (const entry of book.prepare(posting('300'), 'refuse') ?? []) apply(entry)
  expect([book.balance('a', customer), book.balance('a', pool)]).toEqual([999_700n, 50_000_300n])
  expect(book.balance('b', customer)).toBeNull()
  expect(lastLine()).toMatchObject({ amount: 300n, fee: 0n, balanceAfter: 50_000_300n })
  expect(problems()).toEqual([])
})

test('a fee is booked apart from the amount', () => {
  const { book, apply, lastLine } = opened()
  const transfers = [
    { from: customer, to: pool, amount: '1000' },
    { from: pool, to: fees, amount: '10' },
  ]
  for (const entry of book.prepare({ ...posting('0'), transfers }, 'refuse') ?? []) apply(entry)
  expect(lastLine()).toMatchObject({ amount: 1000n, fee: -10n, balanceAfter: 50_000_990n })
})

test('an account that holds too little is refused, or filled up in whole openings', () => {
  const { book, apply, problems } = opened()
  expect(book.prepare(posting('1000001'), 'refuse')).toBeNull()
  const entries = book.prepare(posting('2000001'), 'cover') ?? []
  expect(entries.map((entry) => entry.type)).toEqual(['top_up', 'collect'])
  for (const entry of entries) apply(entry)
  expect(book.balance('a', customer)).toBe(999_999n)
  expect(problems()).toEqual([])
})

const wrong: [string, Partial<JournalEntry>, RegExp][] = [
  ['out of order', { seq: 9 }, /out of order/],
  [
    'that leaves a wallet below zero',
    { transfers: [{ from: customer, to: pool, amount: '1000001' }] },
    /below zero/,
  ],
  [
    'that moves less than nothing',
    { transfers: [{ from: issuer, to: pool, amount: '-1' }] },
    /an invalid transfer/,
  ],
  [
    'from an account to itself',
    { transfers: [{ from: pool, to: pool, amount: '1' }] },
    /an invalid transfer/,
  ],
]

test.each(wrong)('an entry %s is not taken', (_name, change, words) => {
  const { apply } = opened()
  const transfers = [{ from: customer, to: pool, amount: '1' }]
  const entry: JournalEntry = {
    seq: 3,
    operator: 'a',
    at: 1,
    type: 'collect',
    operationId: 'X',
    transfers,
    ...change,
  }
  expect(() => apply(entry)).toThrow(words)
})

test('adding everything up again finds a book that was broken', () => {
  const { apply, problems } = opened()
  const transfers = [{ from: customer, to: pool, amount: '1000001' }]
  const entry: JournalEntry = { seq: 3, operator: 'a', at: 1, type: 'collect', operationId: 'X', transfers }
  expect(() => apply(entry)).toThrow('below zero')
  expect(problems()).toEqual([
    `${pool}: 51000001 is not the sum of its entries`,
    `${customer}: -1 is not the sum of its entries`,
    `${customer}: -1 is below zero`,
    `${pool}: statement lines sum to 50000000`,
  ])
})
