import type pg from 'pg'
import { expect, test } from 'vitest'
import type { Services } from '../../src/context.ts'
import { openSharedStatements } from '../../src/database/shared-statements.ts'
import type { RequestOutcome } from '../../src/requests/outcome.ts'
import { settleTransaction } from '../../src/resources/transactions/settle.ts'
import { createLog } from '../../src/telemetry/log.ts'
import { makeMerchant } from '../kit/merchants.ts'
import { balanceOf, eventTypes, openCollection, problemsOf, settleMany } from '../kit/money.ts'
import { useTestDatabase } from '../kit/database.ts'

const db = await useTestDatabase()
const { pool } = db.database
const other = db.secondProcess()

/** The services that settling needs, in a process with its own connections. */
function process(on: pg.Pool): Services {
  return {
    sharedStatements: openSharedStatements(on),
    log: createLog('silent'),
  } as unknown as Services
}

let references = 0
function paid(amount = 5_000n, operatorRef = `OP-${(references += 1)}`): RequestOutcome {
  const evidence = {
    operatorRef,
    amount,
    settledAt: new Date('2026-01-31T10:00:00.000Z'),
    source: 'query',
    digest: 'd',
  } as const
  return { status: 'success', source: 'query', evidence, watchMs: null }
}
const refused: RequestOutcome = {
  status: 'failed',
  source: 'query',
  refusal: { reason: 'PAYER_DECLINED', code: 'no', message: 'Declined.' },
}
const expired: RequestOutcome = { status: 'expired', source: 'service' }

test('100 parallel settlements of one transaction: one credit, one event', async () => {
  const merchant = await makeMerchant(pool)
  const { transactionId } = await openCollection(pool, merchant)
  const [a, b] = [process(pool), process(other.pool)]
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, n) => settleTransaction(n % 2 ? a : b, transactionId, paid())),
  )
  expect(answers.filter((answer) => answer.moved)).toHaveLength(1)
  expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set(['success']))
  expect(await balanceOf(pool, merchant.merchantId)).toEqual({ available: 5_000n, reserved: 0n })
  expect(await eventTypes(pool, merchant.merchantId)).toEqual(['payment_pending', 'payment_received'])
  expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
})

test.each([
  ['paid, then refused', [paid(), refused], 'success', ['payment_received']],
  ['refused, then paid', [refused, paid()], 'success', ['payment_failed', 'payment_received']],
  ['expired, then paid', [expired, paid()], 'success', ['payment_expired', 'payment_received']],
  ['paid, then expired', [paid(), expired], 'success', ['payment_received']],
  ['refused, then expired', [refused, expired], 'failed', ['payment_failed']],
] as const)('contradictory outcomes in one call: %s', async (_what, outcomes, stands, told) => {
  const merchant = await makeMerchant(pool)
  const { transactionId } = await openCollection(pool, merchant)
  const services = process(pool)
  const answers = await Promise.all(
    outcomes.map((outcome) => settleTransaction(services, transactionId, outcome)),
  )
  expect(answers[1]?.status).toBe(stands)
  expect(await eventTypes(pool, merchant.merchantId)).toEqual(['payment_pending', ...told])
  const credited = stands === 'success' ? 5_000n : 0n
  expect(await balanceOf(pool, merchant.merchantId)).toEqual({ available: credited, reserved: 0n })
  expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
})

test('contradictory outcomes from two processes at once leave one truth and one credit', async () => {
  const merchant = await makeMerchant(pool)
  const [a, b] = [process(pool), process(other.pool)]
  const open = await Promise.all(Array.from({ length: 20 }, () => openCollection(pool, merchant)))
  await Promise.all(
    open.flatMap(({ transactionId }) => [
      settleTransaction(a, transactionId, refused),
      settleTransaction(b, transactionId, paid()),
      settleTransaction(a, transactionId, expired),
    ]),
  )
  // A payment counts as paid in either order.
  expect(await balanceOf(pool, merchant.merchantId)).toEqual({ available: 100_000n, reserved: 0n })
  expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
})

test('many merchants, parallel statements of two processes: no deadlock, each credited once', async () => {
  const merchants = await Promise.all(Array.from({ length: 12 }, () => makeMerchant(pool)))
  const open = await Promise.all(
    merchants.flatMap((merchant) => Array.from({ length: 10 }, () => openCollection(pool, merchant))),
  )
  const ids = open.map(({ transactionId }) => transactionId)
  const before = await deadlocks()
  await Promise.all(
    Array.from({ length: 16 }, (_, n) => {
      // Every call in an order of its own.
      const order = ids.toSorted((x, y) => Number(((x * 7919n + BigInt(n)) % 127n) - ((y * 7919n) % 127n)))
      return settleMany(
        n % 2 ? pool : other.pool,
        order.map((id) => ({ id, to: 'success' })),
      )
    }),
  )
  expect(await deadlocks()).toBe(before)
  for (const { merchantId } of merchants) {
    expect(await balanceOf(pool, merchantId)).toEqual({ available: 50_000n, reserved: 0n })
  }
  expect(await problemsOf(pool, ...merchants.map(({ merchantId }) => merchantId))).toEqual([])
})

async function deadlocks(): Promise<bigint | undefined> {
  await db.owner.query('SELECT pg_stat_force_next_flush()')
  const { rows } = await db.owner.query<{ deadlocks: bigint }>(
    'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()',
  )
  return rows[0]?.deadlocks
}

test.each([4_900n, 4_999n, 5_000n])(
  'the amount that the operator reports is credited: %s',
  async (amount) => {
    const merchant = await makeMerchant(pool)
    const { transactionId } = await openCollection(pool, merchant, { provider: 'OperatorC' })
    await settleTransaction(process(pool), transactionId, paid(amount, `C-${amount}`))
    expect(await balanceOf(pool, merchant.merchantId)).toEqual({ available: amount, reserved: 0n })
    const { rows } = await db.owner.query(
      `SELECT t.amount, t.settled_amount, t.operator_reference, m.debit, m.credit, r.state, r.next_check_at,
       r.evidence->>'operatorRef' AS evidence
     FROM transaction t JOIN ledger_entry m ON m.origin = 'transaction:' || t.id
       JOIN operator_request r ON r.transaction_id = t.id WHERE t.id = $1`,
      [transactionId],
    )
    expect(rows).toEqual([
      {
        amount: 5_000n,
        settled_amount: amount,
        operator_reference: `C-${amount}`,
        debit: 'clearing_operator_c',
        credit: 'available',
        state: 'settled',
        next_check_at: null,
        evidence: `C-${amount}`,
      },
    ])
    expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
  },
)

test('an amount that cannot be credited fails alone', async () => {
  const merchant = await makeMerchant(pool)
  const services = process(pool)
  const open = await Promise.all(Array.from({ length: 5 }, () => openCollection(pool, merchant)))
  const answers = await Promise.allSettled(
    open.map(({ transactionId }, n) =>
      settleTransaction(services, transactionId, paid(n === 2 ? 0n : 5_000n)),
    ),
  )
  expect(answers.map((answer) => answer.status === 'fulfilled')).toEqual([true, true, false, true, true])
  expect(await balanceOf(pool, merchant.merchantId)).toEqual({ available: 20_000n, reserved: 0n })
})

test('an expired payment is queried again in an hour; one that a callback made due stays due', async () => {
  const merchant = await makeMerchant(pool)
  const [quiet, called] = [await openCollection(pool, merchant), await openCollection(pool, merchant)]
  await db.owner.query(`UPDATE operator_request SET next_check_at = now() - interval '1 s' WHERE id = $1`, [
    called.requestId,
  ])
  await settleMany(pool, [
    { id: quiet.transactionId, to: 'expired', source: 'service' },
    { id: called.transactionId, to: 'expired', source: 'service' },
  ])
  const { rows } = await db.owner.query(
    `SELECT next_check_at <= now() AS due, next_check_at > now() + interval '59 min' AS later
     FROM operator_request WHERE id = ANY ($1) ORDER BY id`,
    [[quiet.requestId, called.requestId]],
  )
  expect(rows).toEqual([
    { due: false, later: true },
    { due: true, later: false },
  ])
})
