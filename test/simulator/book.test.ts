import { expect, test } from 'vitest'
import type { Posting } from '../../src/simulator/book.ts'
import { Book, fees, issuer, pool, wallet } from '../../src/simulator/book.ts'
import type { JournalEntry } from '../../src/simulator/model.ts'

const customer = wallet('+22376000001')

function posting(amount: string, from = customer, to = pool): Posting {
  return { operator: 'a', at: 1, type: 'collect', operationId: 'X', transfers: [{ from, to, amount }] }
}

function opened(): Book {
  const book = new Book()
  for (const account of [pool, customer]) for (const entry of book.opening('a', account, 1)) book.apply(entry)
  return book
}

test('accounts open once, and a movement changes both sides and the statement', () => {
  const book = opened()
  expect(book.opening('a', customer, 2)).toEqual([])
  for (const entry of book.prepare(posting('300'), 'refuse') ?? []) book.apply(entry)
  expect([book.balance('a', customer), book.balance('a', pool)]).toEqual([999_700n, 50_000_300n])
  expect(book.balance('b', customer)).toBeNull()
  expect(book.poolLines('a').at(-1)).toMatchObject({ amount: 300n, fee: 0n, balanceAfter: 50_000_300n })
  expect(book.verify('a')).toEqual([])
})

test('a fee is booked apart from the amount', () => {
  const book = opened()
  const transfers = [
    { from: customer, to: pool, amount: '1000' },
    { from: pool, to: fees, amount: '10' },
  ]
  for (const entry of book.prepare({ ...posting('0'), transfers }, 'refuse') ?? []) book.apply(entry)
  expect(book.poolLines('a').at(-1)).toMatchObject({ amount: 1000n, fee: -10n, balanceAfter: 50_000_990n })
})

test('an account that holds too little is refused, or filled up in whole openings', () => {
  const book = opened()
  expect(book.prepare(posting('1000001'), 'refuse')).toBeNull()
  const entries = book.prepare(posting('2000001'), 'cover') ?? []
  expect(entries.map((entry) => entry.type)).toEqual(['top_up', 'collect'])
  for (const entry of entries) book.apply(entry)
  expect(book.balance('a', customer)).toBe(999_999n)
  expect(book.verify('a')).toEqual([])
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
  const book = opened()
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
  expect(() => book.apply(entry)).toThrow(words)
})

test('adding everything up again finds a book that was broken', () => {
  const book = opened()
  const transfers = [{ from: customer, to: pool, amount: '1000001' }]
  const entry: JournalEntry = { seq: 3, operator: 'a', at: 1, type: 'collect', operationId: 'X', transfers }
  expect(() => book.apply(entry)).toThrow('below zero')
  expect(book.verify('a')).toEqual([
    `${pool}: 51000001 is not the sum of its entries`,
    `${customer}: -1 is not the sum of its entries`,
    `${customer}: -1 is below zero`,
    `${pool}: statement lines sum to 50000000`,
  ])
})
