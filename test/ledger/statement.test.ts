import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { borrow } from '../kit/client.ts'
import { makeMerchant, type SignedInMerchant } from '../kit/merchants.ts'
import { readEntries } from '../../src/ledger/entries.ts'
import {
  readBalanceAt,
  readLines,
  readStatement,
  type Span,
  type StatementLine,
} from '../../src/ledger/statement.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'
import {
  balanceOf,
  fundedMerchant,
  fundMerchant,
  openCollection,
  reverseMany,
  settleMany,
} from '../kit/money.ts'
import {
  beginPayouts,
  createPayouts,
  depositItem,
  depositMany,
  openDeposit,
  openPayout,
  payoutItem,
  settleDeposits,
} from '../kit/money-out.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

const moves = ['fund', 'collect', 'take back', 'deposit', 'deposit failed', 'deposit open'] as const

/** Does one of the things that move money; what is not covered moves none. */
async function move(merchant: SignedInMerchant, kind: (typeof moves)[number], amount: bigint): Promise<void> {
  const { pool } = database.database
  if (kind === 'fund') {
    await fundMerchant(pool, merchant.merchantId, amount)
  } else if (kind === 'collect' || kind === 'take back') {
    const { transactionId: id } = await openCollection(pool, merchant, { amount })
    await settleMany(pool, [{ id, to: 'success', amount }])
    if (kind === 'take back') await reverseMany(pool, [id])
  } else if ((await balanceOf(pool, merchant.merchantId)).available >= amount) {
    const { transactionId: id } = await openDeposit(pool, merchant, { amount })
    if (kind !== 'deposit open')
      await settleDeposits(pool, [{ id, to: kind === 'deposit' ? 'success' : 'failed', amount }])
  }
}

/** All lines of a time, by pages of three. */
async function allLines(merchantId: number, span: Span): Promise<StatementLine[]> {
  const lines: StatementLine[] = []
  for (;;) {
    const after = lines.at(-1) ?? null
    const page = await readLines(database.database.pool, merchantId, { ...span, after, take: 3 })
    lines.push(...page)
    if (page.length < 3) return lines
  }
}

const sum = (
  lines: readonly StatementLine[],
  what: 'availableChange' | 'reservedChange' | 'receivableChange',
) => lines.reduce((all, line) => all + line[what], 0n)

test('opening and lines are the closing, over random histories and any time of them', async () => {
  const { pool } = database.database
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.constantFrom(...moves), fc.bigInt({ min: 1_000n, max: 9_000n })), {
        minLength: 3,
        maxLength: 12,
      }),
      fc.nat(),
      fc.nat(),
      async (history, a, b) => {
        const merchant = await fundedMerchant(pool, 5_000n)
        const { merchantId } = merchant
        for (const [kind, amount] of history) await move(merchant, kind, amount)
        const all = await allLines(merchantId, { from: new Date(0), to: null })
        // Moments at which something moved: both ends of a time are proven.
        const times = all.map(({ createdAt }) => createdAt)
        const [from = new Date(0), to = null] = [a, b]
          .map((n) => times[n % times.length] ?? new Date(0))
          .toSorted((x, y) => x.getTime() - y.getTime())
        const statement = await readStatement(pool, merchantId, { from, to })
        const lines = await allLines(merchantId, { from, to })
        expect(lines.map(({ id }) => id)).toEqual(
          all.filter(({ createdAt: at }) => at >= from && (to === null || at < to)).map(({ id }) => id),
        )
        const before = all.filter(({ createdAt }) => createdAt < from)
        for (const [held, shown] of [
          [statement.opening, before],
          [statement.closing, [...before, ...lines]],
        ] as const) {
          expect(held).toEqual({
            available: sum(shown, 'availableChange'),
            reserved: sum(shown, 'reservedChange'),
            receivable: sum(shown, 'receivableChange'),
            balance: sum(shown, 'availableChange') + sum(shown, 'reservedChange'),
          })
        }
        expect(await readBalanceAt(pool, merchantId, from)).toEqual({ ...statement.opening, asOf: from })
        const now = await readStatement(pool, merchantId, { from: new Date(0), to: null })
        expect(now.opening).toEqual({ available: 0n, reserved: 0n, receivable: 0n, balance: 0n })
        expect(now.closing).toMatchObject(await balanceOf(pool, merchantId))
      },
    ),
    { numRuns: 40 },
  )
})

test('entries are those of the cause and of the merchant, oldest first', async () => {
  const { pool } = database.database
  const [shop, other] = [await fundedMerchant(pool, 5_000n), await fundedMerchant(pool, 5_000n)]
  const { transactionId: id } = await openDeposit(pool, shop)
  await settleDeposits(pool, [{ id, to: 'success', amount: 900n }])
  const origin = `transaction:${id}`
  const [entries = [], none] = await readEntries(pool, shop.merchantId, [origin, 'transaction:0'])
  expect(entries.map(({ step, debit, credit, amount }) => [step, debit, credit, amount])).toEqual([
    ['reserve', 'available', 'reserved', 1_000n],
    ['post', 'reserved', 'clearing_operator_a', 900n],
    ['withhold', 'reserved', 'unallocated', 100n],
  ])
  expect(none).toEqual([])
  expect(await readEntries(pool, other.merchantId, [origin])).toEqual([[]])
})

type Verb = 'deposit_many' | 'create_payouts' | 'begin_payouts'

test.each<Verb>(['deposit_many', 'create_payouts', 'begin_payouts'])(
  'the reservation of %s that waited for the balance comes after a credit made meanwhile',
  async (verb) => {
    const { pool } = database.database
    const both = [await fundedMerchant(pool, 1_000n), await makeMerchant(pool)] as const
    const [{ merchantId: held }, { merchantId }] = both
    const scheduledAt = new Date(Date.now() - 1_000)
    if (verb === 'begin_payouts')
      for (const merchant of both) await openPayout(pool, merchant, { scheduledAt })
    const reserve = {
      deposit_many: () =>
        depositMany(
          pool,
          both.map((merchant) => depositItem(merchant)),
        ),
      create_payouts: () =>
        createPayouts(
          pool,
          both.map((merchant) => payoutItem(merchant)),
        ),
      begin_payouts: () => beginPayouts(pool),
    }[verb]
    const holder = await borrow(database.owner)
    await holder.query('BEGIN')
    await holder.query('SELECT FROM merchant_balance WHERE merchant_id = $1 FOR UPDATE', [held])
    const reserved = reserve()
    await database.untilWaiting()
    await move(both[1], 'fund', 1_000n)
    await holder.query('COMMIT')
    await reserved
    holder.release()
    const lines = await allLines(merchantId, { from: new Date(0), to: null })
    expect(lines.map((line) => line.availableChange)).toEqual([1_000n, -1_000n])
  },
)

test('money that is taken back comes after the entries that it waited for', async () => {
  const { pool } = database.database
  const both = [await makeMerchant(pool), await makeMerchant(pool)] as const
  const [{ merchantId: held }, { merchantId }] = both
  const paid = await Promise.all(both.map((merchant) => openCollection(pool, merchant, { amount: 1_000n })))
  const ids = paid.map(({ transactionId }) => transactionId)
  await settleMany(
    pool,
    ids.map((id) => ({ id, to: 'success' })),
  )
  // Spent, so that it takes what is paid in while it waits.
  const { transactionId: spent } = await openDeposit(pool, both[1])
  await settleDeposits(pool, [{ id: spent, to: 'success' }])
  const holder = await borrow(database.owner)
  await holder.query('BEGIN')
  await holder.query('SELECT FROM merchant_balance WHERE merchant_id = $1 FOR UPDATE', [held])
  const reversed = reverseMany(pool, ids)
  await database.untilWaiting()
  await move(both[1], 'fund', 1_000n)
  await holder.query('COMMIT')
  await reversed
  holder.release()
  const lines = await allLines(merchantId, { from: new Date(0), to: null })
  expect(lines.map((line) => line.availableChange)).toEqual([1_000n, -1_000n, 0n, 1_000n, -1_000n])
})
