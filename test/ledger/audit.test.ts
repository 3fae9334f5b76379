import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { newSliceSize, proveDueSlice, proveRecent, proveWhole } from '../../src/ledger/audit.ts'
import { haltPaymentsOut, resumePaymentsOut } from '../../src/ledger/payments-out.ts'
import { type Invariant, invariants, verifyLedger } from '../../src/ledger/verify.ts'
import { serviceJobs } from '../../src/resources/jobs.ts'
import type { AdminServices } from '../../src/terminal/administration-context.ts'
import { commands } from '../../src/terminal/commands.ts'
import type { Services } from '../../src/context.ts'
import { borrow } from '../kit/client.ts'
import type { SignedInMerchant } from '../kit/merchants.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'
import { corrupt } from '../kit/corrupt.ts'
import { passOver, provenBySlices } from '../kit/passes.ts'
import { fundedMerchant, openCollection, settleMany } from '../kit/money.ts'
import { createPayouts, openDeposit, openPayout, payoutItem, settleDeposits } from '../kit/money-out.ts'
import { corruptionsOfBatches } from './corruptions-batches.ts'
import { corruptionsOfLinks } from './corruptions-links.ts'
import { corruptionsOut } from './corruptions-out.ts'

let db: TestDatabase
const made: TestDatabase[] = []
afterAll(async () => void (await Promise.all(made.map((each) => each.drop()))))

interface Books {
  merchantId: number
  merchant: SignedInMerchant
  /** A deposit that was paid out. */
  spent: bigint
  /** A paid collection, a failed one, one that expired and one under way. */
  paid: bigint
  failed: bigint
  expired: bigint
  open: bigint
}

/** A merchant with one collection of each fate, and money reserved, paid out and given back. */
async function keepBooks(): Promise<Books> {
  const { pool } = db.database
  const merchant = await fundedMerchant(pool, 10_000n)
  const [paid, failed, expired, open] = [
    await openCollection(pool, merchant),
    await openCollection(pool, merchant),
    await openCollection(pool, merchant),
    await openCollection(pool, merchant),
  ].map(({ transactionId }) => transactionId) as [bigint, bigint, bigint, bigint]
  await settleMany(pool, [
    { id: paid, to: 'success' },
    { id: failed, to: 'failed' },
    { id: expired, to: 'expired', source: 'service' },
  ])
  const { merchantId } = merchant
  const { transactionId: spent } = await openDeposit(pool, merchant, { amount: 2_000n })
  const { transactionId: refused } = await openDeposit(pool, merchant)
  await settleDeposits(pool, [
    { id: spent, to: 'success' },
    { id: refused, to: 'failed' },
  ])
  await openPayout(pool, merchant)
  await pool.query('SELECT make_missing_deliveries(1000)')
  return { merchantId, merchant, spent, paid, failed, expired, open }
}

/** Proves what is there and lets the point move on to its end, as two minutes of service do. */
async function settleDown(): Promise<void> {
  for (let turn = 0; turn < 2; turn += 1) {
    expect(await proveRecent(db.database)).toMatchObject({ problems: [] })
  }
  expect(await proveRecent(db.database)).toEqual({ problems: [], isEnd: true })
}

async function found(whole: boolean): Promise<Set<Invariant>> {
  return new Set((await verifyLedger(db.database.pool, { whole })).map(({ invariant }) => invariant))
}

const ledger_entry = 'INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)'
const move = (merchant: number, origin: string, [step, debit, credit]: string[], amount: number) =>
  `${ledger_entry} VALUES (${merchant}, '${origin}', '${step}', '${debit}', '${credit}', ${amount}, now())`

/** Each: what is wrong, which invariant names it, the statements that make it so. */
const corruptions: readonly (readonly [
  what: string,
  names: Invariant,
  corruption: (books: Books) => string[],
])[] = [
  [
    'money out of nothing',
    'balances_equal_entries',
    ({ merchantId }) => [
      `UPDATE merchant_balance SET available = available + 1 WHERE merchant_id = ${merchantId}`,
    ],
  ],
  [
    'a balance below zero',
    'no_balance_below_zero',
    ({ merchantId }) => [
      'ALTER TABLE merchant_balance DROP CONSTRAINT merchant_balance_available',
      `UPDATE merchant_balance SET available = -1 WHERE merchant_id = ${merchantId}`,
    ],
  ],
  [
    'a credit that never came',
    'collections_credited_once',
    ({ paid }) => [`DELETE FROM ledger_entry WHERE origin = 'transaction:${paid}'`],
  ],
  [
    'a credit of a payment that failed',
    'collections_credited_once',
    ({ merchantId, failed }) => [
      move(merchantId, `transaction:${failed}`, ['credit', 'clearing_operator_a', 'available'], 1),
    ],
  ],
  [
    'a credit of less than was settled',
    'collections_credited_once',
    ({ paid }) => [`UPDATE ledger_entry SET amount = amount - 1 WHERE origin = 'transaction:${paid}'`],
  ],
  [
    'a reversal that gave nothing back',
    'collections_credited_once',
    ({ paid }) => [`UPDATE transaction SET status = 'reversed' WHERE id = ${paid}`],
  ],
  [
    'money given back of a payment that stands',
    'collections_credited_once',
    ({ merchantId, paid }) => [
      move(merchantId, `transaction:${paid}`, ['reverse', 'available', 'clearing_operator_a'], 5_000),
    ],
  ],
  [
    'money reserved for a payment that is over',
    'reservations_end_once',
    ({ merchantId, failed }) => [
      move(merchantId, `transaction:${failed}`, ['reserve', 'available', 'reserved'], 1),
    ],
  ],
  [
    'money paid out and given back',
    'reservations_end_once',
    ({ merchantId, spent }) => [
      'DROP INDEX ledger_entry_reservation_end',
      move(merchantId, `transaction:${spent}`, ['void', 'reserved', 'available'], 2_000),
    ],
  ],
  [
    'an event with a position too far',
    'events_report_every_change',
    ({ open }) => [`UPDATE event SET position = 99 WHERE data->>'transaction_id' = '${open}'`],
  ],
  [
    'a payment that no event reports',
    'events_report_every_change',
    ({ paid }) => [
      `DELETE FROM event WHERE data->>'transaction_id' = '${paid}' AND type = 'payment_received'`,
    ],
  ],
  [
    'a payment that two events report',
    'events_report_every_change',
    ({ paid }) => [
      `SELECT append_events(array_agg((merchant_id, type, data)::new_event), now())
       FROM event WHERE data->>'transaction_id' = '${paid}' AND type = 'payment_received'`,
    ],
  ],
  [
    'a payment that an event reports to another merchant',
    'events_report_every_change',
    ({ paid }) => [`UPDATE event SET merchant_id = 0 WHERE data->>'transaction_id' = '${paid}'`],
  ],
  [
    'a payment that went back to where it was',
    'statuses_agree_with_requests',
    ({ expired }) => [
      `UPDATE transaction SET status = 'pending' WHERE id = ${expired}`,
      `UPDATE operator_request SET next_check_at = NULL WHERE transaction_id = ${expired}`,
    ],
  ],
  [
    'a payment that the service never asks about',
    'statuses_agree_with_requests',
    ({ open }) => [`UPDATE operator_request SET next_check_at = NULL WHERE transaction_id = ${open}`],
  ],
  [
    'a payment that the operator refused',
    'statuses_agree_with_requests',
    ({ paid }) => [`UPDATE operator_request SET state = 'refused' WHERE transaction_id = ${paid}`],
  ],
  [
    'a payment that was asked for under another identity',
    'statuses_agree_with_requests',
    ({ paid }) => [
      `UPDATE operator_request SET correlation_id = gen_random_uuid() WHERE transaction_id = ${paid}`,
    ],
  ],
  [
    'a customer who was asked twice',
    'statuses_agree_with_requests',
    ({ open }) => [
      `INSERT INTO operator_request (merchant_id, transaction_id, provider, kind, correlation_id, amount,
         phone, fence_until, created_at, next_check_at)
       SELECT merchant_id, transaction_id, provider, kind, gen_random_uuid(), amount,
         phone, now(), now(), now()
       FROM operator_request WHERE transaction_id = ${open}`,
    ],
  ],
  [
    'a credit that came twice',
    'entries_have_one_origin',
    ({ paid, merchantId }) => [
      'DROP INDEX ledger_entry_origin_step_key',
      `${ledger_entry} SELECT merchant_id, origin, step, debit, credit, amount, now() FROM ledger_entry
       WHERE origin = 'transaction:${paid}'`,
      `UPDATE merchant_balance SET available = available + 5000 WHERE merchant_id = ${merchantId}`,
    ],
  ],
  [
    'money that moved for no reason',
    'entries_have_one_origin',
    ({ merchantId }) => [
      move(merchantId, 'a gift', ['fund', 'funding', 'available'], 1),
      `UPDATE merchant_balance SET available = available + 1 WHERE merchant_id = ${merchantId}`,
    ],
  ],
  [
    'two payments of one name',
    'references_are_unique',
    ({ open, paid }) => [
      'DROP INDEX transaction_reference_merchant_id_key',
      `UPDATE transaction SET reference = (SELECT reference FROM transaction WHERE id = ${paid})
       WHERE id = ${open}`,
    ],
  ],
]

/** A database that the test may spoil. */
async function ownDatabase(): Promise<void> {
  db = await createTestDatabase()
  made.push(db)
}

test('sound books break no invariant, whole or since the point', async () => {
  await ownDatabase()
  await keepBooks()
  await settleDown()
  await keepBooks()
  expect([await found(true), await found(false)]).toEqual([new Set(), new Set()])
  const client = await borrow(db.owner)
  expect(await provenBySlices(client, 3)).toEqual(new Set())
  client.release()
})

test('at least one corruption is planted against each invariant', () => {
  expect(
    new Set(
      [...corruptions, ...corruptionsOut, ...corruptionsOfBatches, ...corruptionsOfLinks].map(
        ([, name]) => name,
      ),
    ),
  ).toEqual(new Set(Object.keys(invariants)))
})

describe('the audit names', () => {
  let books: Books
  beforeAll(async () => {
    db = await createTestDatabase()
    made.push(db)
    await keepBooks()
    await settleDown()
    books = await keepBooks()
  })

  test.each(corruptions)('%s', async (_what, name, corruption) => {
    const client = await borrow(db.owner)
    await client.query('BEGIN')
    await client.query('SET LOCAL session_replication_role = replica')
    for (const statement of corruption(books)) await client.query(statement)
    // New rows are checked at once; the whole proof checks all rows.
    for (const whole of [false, true]) {
      const problems = await verifyLedger(client, { whole })
      expect(problems.map(({ invariant }) => invariant)).toContain(name)
    }
    expect(await provenBySlices(client, 1_000)).toContain(name)
    await client.query('ROLLBACK')
    client.release()
    expect(await found(true)).toEqual(new Set())
  })
})

describe('since the point', () => {
  beforeEach(ownDatabase)

  test('old books are not read again, but every balance is', async () => {
    const { paid, merchantId } = await keepBooks()
    await settleDown()
    await corrupt(db.owner, `UPDATE operator_request SET state = 'refused' WHERE transaction_id = $1`, [paid])
    expect(await found(false)).toEqual(new Set())
    expect(await found(true)).toEqual(new Set(['statuses_agree_with_requests']))
    await corrupt(db.owner, 'UPDATE merchant_balance SET reserved = 0 WHERE merchant_id = $1', [merchantId])
    expect(await found(false)).toEqual(new Set(['balances_equal_entries']))
  })

  test('old books are read once a day, slice by slice', async () => {
    const { paid } = await keepBooks()
    await settleDown()
    await corrupt(db.owner, `UPDATE operator_request SET state = 'refused' WHERE transaction_id = $1`, [paid])
    expect(await proveRecent(db.database)).toEqual({ problems: [], isEnd: true })
    expect(await proveDueSlice(db.database, newSliceSize())).toBe(null)
    await db.owner.query(`UPDATE audit_point SET whole_proven_at = now() - interval '25 hours'`)
    expect(await passOver(db)).toMatchObject([{ invariant: 'statuses_agree_with_requests' }])
    expect(await proveDueSlice(db.database, newSliceSize())).toBe(null)
  })

  test('a payment that is taken before it and settled after it breaks nothing', async () => {
    const { open } = await keepBooks()
    await settleDown()
    await settleMany(db.database.pool, [{ id: open, to: 'expired', source: 'service' }])
    expect(await proveRecent(db.database)).toEqual({ problems: [], isEnd: true })
    await settleMany(db.database.pool, [{ id: open, to: 'success' }])
    expect(await proveRecent(db.database)).toEqual({ problems: [], isEnd: true })
    await settleDown()
  })

  test('one of two processes has its turn', async () => {
    await keepBooks()
    const other = await borrow(db.owner)
    await other.query('BEGIN; SELECT pg_advisory_xact_lock(72707372)')
    expect(await proveRecent(db.database)).toBe(null)
    expect(await proveWhole(db.database)).toEqual([])
    await other.query('COMMIT')
    other.release()
  })
})

describe('payments out', () => {
  beforeEach(ownDatabase)

  /** The result of the verb for one more payout, which is covered. */
  const next = async ({ merchant }: Books) =>
    (await createPayouts(db.database.pool, [payoutItem(merchant)])).map(({ outcome }) => outcome)

  test('are halted: no money is reserved, from the same moment, until a person resumes them', async () => {
    const { pool } = db.database
    const books = await keepBooks()
    expect(await haltPaymentsOut(pool, 'a check')).toBe(true)
    expect(await haltPaymentsOut(pool, 'another')).toBe(false)
    expect(await next(books)).toEqual(['halted'])
    expect(await resumePaymentsOut(pool, 'checked')).toBe(true)
    expect(await resumePaymentsOut(pool, 'again')).toBe(false)
    expect(await next(books)).toEqual(['made'])
    const { rows } = await db.owner.query('SELECT reason, lifted_reason FROM payments_out_halt')
    expect(rows).toEqual([{ reason: 'a check', lifted_reason: 'checked' }])
    await db.owner.query('SELECT make_missing_deliveries(1000)')
    expect(await found(true)).toEqual(new Set())
  })

  test('a reservation that waited for its turn meets the halt that came meanwhile', async () => {
    const books = await keepBooks()
    const first = await borrow(db.owner)
    await first.query('BEGIN')
    await first.query('SELECT FROM merchant_balance WHERE merchant_id = $1 FOR UPDATE', [books.merchantId])
    const waiting = next(books)
    await db.untilWaiting()
    await haltPaymentsOut(db.owner, 'now')
    await first.query('COMMIT')
    first.release()
    expect(await waiting).toEqual(['halted'])
  })

  test('npm run admin -- audit prints every invariant, and fails where one is broken', async () => {
    const { merchantId } = await keepBooks()
    const audit = () => commands['audit']?.({ database: db.database } as AdminServices, {})
    expect(await audit()).toMatchObject({ failed: false, answer: { holds: true } })
    await corrupt(db.owner, 'UPDATE merchant_balance SET reserved = 0 WHERE merchant_id = $1', [merchantId])
    const { words = '', failed } = (await audit()) ?? {}
    expect(failed).toBe(true)
    expect(words.split('\n')).toEqual([
      expect.stringMatching(/^balances_equal_entries {2}1 violation /),
      expect.stringMatching(`^  merchant ${merchantId}: balance says .* reserved 0; its entries say`),
      ...Array<unknown>(Object.keys(invariants).length - 1).fill(expect.stringMatching(/^\w+ {2}ok /)),
    ])
  })

  test('the job of the service halts them and raises the alarm', async () => {
    const books = await keepBooks()
    const { merchantId } = books
    const alarms: unknown[] = []
    const log = { error: (_detail: object, words: string) => alarms.push(words) }
    const played = { database: db.database, operators: { list: () => [] }, log, notifyJob: () => {} }
    const services = played as unknown as Services
    const job = serviceJobs(services).find(({ name }) => name === 'ledger.audit')
    await job?.run()
    expect(alarms).toEqual([])
    await corrupt(db.owner, 'UPDATE merchant_balance SET reserved = 0 WHERE merchant_id = $1', [merchantId])
    await job?.run()
    expect(alarms).toEqual([expect.stringMatching(/^alarm: /)])
    expect(await next(books)).toEqual(['halted'])
  })
})
