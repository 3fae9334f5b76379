import fc from 'fast-check'
import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { transactionStates } from '../../src/resources/transactions/states.ts'
import type { SignedInMerchant } from '../kit/merchants.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'
import { balanceOf, collectMany, fundedMerchant, fundMerchant, item, settleMany } from '../kit/money.ts'

let db: TestDatabase
let pool: pg.Pool
beforeAll(async () => {
  db = await createTestDatabase()
  pool = db.database.pool
})
afterAll(() => db.drop())

const who = fc.nat(2)
const which = fc.nat(5)
const amount = fc.integer({ min: 100, max: 3_000 }).map(BigInt)
const operation = fc.oneof(
  fc.record({ do: fc.constant('fund' as const), who, amount }),
  fc.record({ do: fc.constant('collect' as const), items: fc.array(fc.record({ who, amount }), many()) }),
  fc.record({
    do: fc.constant('settle' as const),
    items: fc.array(
      fc.record({
        which,
        to: fc.constantFrom('success', 'failed', 'cancelled', 'expired', 'reversed', 'pending'),
        source: fc.constantFrom('initiate', 'query', 'service'),
        amount: fc.option(amount, { nil: null }),
      }),
      many(),
    ),
  }),
)
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never

function many() {
  return { minLength: 1, maxLength: 6 }
}

type Status = (typeof transactionStates.statuses)[number]

/** The whole ledger in a page: what the database must agree with after every step. */
class Model {
  readonly merchants: readonly SignedInMerchant[]
  readonly held: { available: bigint; reserved: bigint }[]
  readonly payments: { id: bigint; who: number; amount: bigint; status: Status }[] = []

  constructor(merchants: readonly SignedInMerchant[]) {
    this.merchants = merchants
    this.held = merchants.map(() => ({ available: 0n, reserved: 0n }))
  }

  add(merchant: number, available: bigint): void {
    const held = this.held[merchant]
    if (!held) throw new Error('no such merchant')
    held.available += available
  }

  settle(at: number, to: Status, source: string, paid: bigint | null): boolean {
    const payment = this.payments[at]
    // Only an outcome is settled.
    if (!payment || to === 'reversed' || !transactionStates.canMove(payment.status, to)) return false
    const over = ['expired', 'failed', 'cancelled'].includes(payment.status)
    if (over && source === 'service') return false
    payment.status = to
    // At most what was asked is credited; the rest waits for a person.
    if (to === 'success')
      this.add(payment.who, paid === null || paid > payment.amount ? payment.amount : paid)
    return true
  }
}

function same(answers: readonly boolean[], expected: readonly boolean[]): void {
  expect(answers).toEqual(expected)
}

async function perform(model: Model, step: Operation): Promise<void> {
  const idOf = (at: number) => model.merchants[at]?.merchantId ?? 0
  switch (step.do) {
    case 'fund': {
      await fundMerchant(pool, idOf(step.who), step.amount)
      return model.add(step.who, step.amount)
    }
    case 'collect': {
      const items = step.items.flatMap((each) => {
        const merchant = model.merchants[each.who]
        return merchant ? [{ ...each, item: item(merchant, { amount: each.amount }) }] : []
      })
      const made = await collectMany(
        pool,
        items.map((each) => each.item),
      )
      for (const [at, { who: merchant, amount: asked }] of items.entries()) {
        model.payments.push({
          id: made[at]?.transactionId ?? 0n,
          who: merchant,
          amount: asked,
          status: 'pending',
        })
      }
      return
    }
    case 'settle': {
      // One outcome per payment and call: of several the first counts, which has a test of its own.
      const known = step.items.filter(
        (each, at) =>
          each.which < model.payments.length && step.items.findIndex((o) => o.which === each.which) === at,
      )
      const answers = await settleMany(
        pool,
        known.map((each) => ({ ...each, id: model.payments[each.which]?.id ?? 0n })),
      )
      const expected = known.map((each) => model.settle(each.which, each.to, each.source, each.amount))
      return same(
        answers.map((answer) => answer.moved),
        expected,
      )
    }
  }
}

test('the ledger agrees with a tiny model after random acts in random order', async () => {
  const property = fc.asyncProperty(fc.array(operation, { minLength: 1, maxLength: 25 }), async (steps) => {
    const merchants = await Promise.all([0, 1, 2].map(() => fundedMerchant(pool, 0n)))
    const model = new Model(merchants)
    for (const step of steps) {
      await perform(model, step)
      const { rows } = await pool.query('SELECT * FROM audit_ledger(true)')
      expect(rows).toEqual([])
      for (const [at, { merchantId }] of merchants.entries()) {
        expect(await balanceOf(pool, merchantId)).toEqual(model.held[at])
      }
    }
  })
  await fc.assert(property, { numRuns: 30 })
})
