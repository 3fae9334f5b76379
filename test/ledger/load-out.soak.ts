import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { openSharedStatements } from '../../src/database/shared-statements.ts'
import { verifyLedger } from '../../src/ledger/verify.ts'
import { recordCallback } from '../../src/requests/record-callback.ts'
import { claimDue, recordRequest } from '../../src/requests/store.ts'
import type { SignedInMerchant } from '../kit/merchants.ts'
import { useTestDatabase } from '../kit/database.ts'
import { randomFrom } from '../kit/random.ts'
import { seed } from '../kit/seeds.ts'
import { collectMany, fundedMerchant, fundMerchant, item, reverseMany, settleMany } from '../kit/money.ts'
import {
  addRecipients,
  beginRecipients,
  cancelBatch,
  createBatch,
  payees,
  processBatch,
  settleRecipients,
} from '../kit/money-bulk.ts'
import {
  beginPayouts,
  cancelPayout,
  createPayouts,
  depositItem,
  depositMany,
  payoutItem,
  reverseDisbursements,
  settleDeposits,
  settlePayouts,
} from '../kit/money-out.ts'

// Every verb that moves money, over rows that all of them want, from many connections in any order.
// `LOAD_MS=60000` for longer.

const loadMs = Number(process.env.LOAD_MS ?? 2_500)

const db = await useTestDatabase()
/** A second process. */
const other = db.secondProcess(24)
const { pool } = other
const merchants = await Promise.all(
  Array.from({ length: 4 }, () => fundedMerchant(db.database.pool, 40_000n)),
)

const random = randomFrom(seed)
const chance = (n: number) => Math.floor(random() * n)

function one<T>(all: readonly T[]): T {
  const found = all[chance(all.length)]
  if (found === undefined) throw new Error('there is none')
  return found
}

/** A few of the newest, in any order, some twice. */
function some<T>(all: readonly T[]): T[] {
  const near = all.slice(-24)
  return Array.from({ length: near.length && 1 + chance(6) }, () => one(near))
}

function few<T>(make: () => T): T[] {
  return Array.from({ length: 1 + chance(6) }, make)
}

const made = {
  collections: [] as bigint[],
  deposits: [] as bigint[],
  payouts: [] as bigint[],
  recipients: [] as bigint[],
  requests: [] as bigint[],
}
type Made = keyof typeof made
function keep(what: Made, ids: readonly (bigint | null)[]): void {
  made[what].push(...ids.filter((id) => id !== null))
}

/** Collections and deposits take their references from one bowl. */
const name = () => `shared-${chance(400)}`
/** Some are known by one send alone. */
const outcomes = (what: Made, ...to: string[]) =>
  some(made[what]).map((id) => ({ id, to: one(to), attempt: one([null, null, 1]) }))

const comingIn = [
  async () => {
    const items = few(() => item(one(merchants), { reference: name() }))
    const answers = await collectMany(pool, items)
    keep(
      'collections',
      answers.map(({ transactionId }) => transactionId),
    )
    keep(
      'requests',
      answers.map(({ requestId }) => requestId),
    )
  },
  () => settleMany(pool, outcomes('collections', 'success', 'success', 'failed')),
  () => reverseMany(pool, some(made.collections)),
  () => Promise.all(merchants.map(({ merchantId }) => fundMerchant(pool, merchantId, 3_000n))),
]

async function refunds() {
  const { rows } = await pool.query<{ id: bigint; merchant: number }>(
    'SELECT id, merchant_id AS merchant FROM transaction WHERE id = ANY ($1) ORDER BY random()',
    [some(made.collections)],
  )
  return rows.flatMap(({ id: refundOf, merchant }) =>
    merchants
      .filter(({ merchantId }) => merchantId === merchant)
      .map((owner) => depositItem(owner, { refundOf, amount: one([5_000n, 2_500n, 1_000n]) })),
  )
}

async function deposit(items: ReturnType<typeof depositItem>[]) {
  const answers = await depositMany(pool, items)
  keep(
    'deposits',
    answers.map(({ transactionId }) => transactionId),
  )
  keep(
    'requests',
    answers.map(({ requestId }) => requestId),
  )
}

const goingOut = [
  () => deposit(few(() => depositItem(one(merchants), { reference: name() }))),
  async () => deposit(await refunds()),
  () => settleDeposits(pool, outcomes('deposits', 'success', 'success', 'failed')),
  async () => {
    const when = () => one([null, new Date(Date.now() - 1_000)])
    const items = few(() => payoutItem(one(merchants), { reference: name(), scheduledAt: when() }))
    keep(
      'payouts',
      (await createPayouts(pool, items)).map(({ payoutId }) => payoutId),
    )
  },
  async () =>
    keep(
      'requests',
      (await beginPayouts(pool, 'OperatorA', 5)).map(({ requestId }) => requestId),
    ),
  () => settlePayouts(pool, outcomes('payouts', 'completed', 'completed', 'failed')),
  () => Promise.all(some(made.payouts).map((id) => cancelPayout(pool, one(merchants), id))),
  () => {
    const origins = [
      ...some(made.deposits).map((id) => `transaction:${id}`),
      ...some(made.payouts).map((id) => `payout:${id}`),
      ...some(made.recipients).map((id) => `recipient:${id}`),
    ]
    return reverseDisbursements(
      pool,
      origins.toSorted(() => chance(3) - 1),
    )
  },
]

/** Drafts and batches, each with its merchant. */
const inTurn: { id: number; owner: SignedInMerchant }[] = []
const withOwner = (act: (owner: SignedInMerchant, id: number) => Promise<unknown>) => () =>
  Promise.all(some(inTurn).map(({ id, owner }) => act(owner, id)))

const inBulk = [
  async () => {
    const owner = one(merchants)
    const [retried] = chance(2) ? some(inTurn.filter((each) => each.owner === owner)) : []
    const people = retried ? [] : few(() => one(payees(1, { provider: one(['OperatorA', 'OperatorB']) })))
    const answer = await createBatch(pool, owner, people, retried && { retried: retried.id })
    if (answer?.outcome === 'made') inTurn.push({ id: answer.batchId ?? 0, owner })
  },
  withOwner((owner, id) => addRecipients(pool, owner, id, payees(1))),
  withOwner((owner, id) => processBatch(pool, owner, id)),
  withOwner((owner, id) => processBatch(pool, owner, id)),
  async () => {
    const begun = await beginRecipients(pool, { room: 4 })
    keep(
      'recipients',
      begun.map(({ recipientId }) => recipientId),
    )
    keep(
      'requests',
      begun.map(({ requestId }) => requestId),
    )
  },
  () => settleRecipients(pool, outcomes('recipients', 'success', 'success', 'failed')),
  withOwner((owner, id) => (chance(3) ? Promise.resolve() : cancelBatch(pool, owner, id))),
]

const aroundThem = [
  () => {
    const sharedStatements = openSharedStatements(pool)
    const next = { attempt: 1, state: 'accepted', handle: {}, nextCheckMs: 1_000 } as const
    const paymentUrl = () => one([null, 'https://pay.example'])
    return Promise.all(
      some(made.requests).map((id) =>
        recordRequest(sharedStatements, { ...next, id, paymentUrl: paymentUrl() }),
      ),
    )
  },
  () => claimDue(pool, 'OperatorA', 8),
  () => {
    const report = { provider: 'OperatorA', body: '{}', correlationId: null, says: 'settled' } as const
    const process = { sharedStatements: openSharedStatements(pool), database: other }
    const say = (requestId: bigint) => {
      const callback = { ...report, requestId, dedupeKey: `${requestId}-${chance(5)}` }
      return recordCallback(process, callback, chance(2) === 0)
    }
    return Promise.all(some(made.requests).map(say))
  },
  () => pool.query('SELECT make_missing_deliveries(500)'),
]

const ends = [
  ...['success', 'failed', 'reversed'].flatMap((status) => [`pay ${status}`, `deposit ${status}`]),
  ...['completed', 'failed', 'cancelled', 'back'].map((status) => `payout ${status}`),
  ...['success', 'failed', 'cancelled', 'back'].map((status) => `recipient ${status}`),
  ...['completed', 'partially_completed', 'failed', 'cancelled'].map((status) => `batch ${status}`),
]

async function missingEnds(): Promise<string[]> {
  const { rows } = await db.owner.query<{ ended: string }>(
    `SELECT DISTINCT transaction_type || ' ' || status AS ended FROM transaction
     UNION
     SELECT 'payout ' || CASE WHEN reversed_at IS NULL THEN status::text ELSE 'back' END FROM payout
     UNION
     SELECT 'recipient ' || CASE WHEN reversed_at IS NULL THEN status::text ELSE 'back' END
     FROM batch_recipient
     UNION
     SELECT 'batch ' || status FROM batch`,
  )
  return ends.filter((end) => rows.every(({ ended }) => ended !== end))
}

test('all verbs at once, in any order: no deadlock comes', async () => {
  const acts: (() => Promise<unknown>)[] = [...comingIn, ...goingOut, ...inBulk, ...aroundThem]
  const until = Date.now() + loadMs
  const errors: unknown[] = []
  // Where the machine is slow, until it came to all of it.
  let missing = ends
  const caller = async () => {
    while (Date.now() < until || (missing.length > 0 && Date.now() < until + 20_000))
      await one(acts)().catch((error: unknown) => errors.push(error))
  }
  const watcher = async () => {
    while (missing.length > 0 && Date.now() < until + 20_000) {
      await sleep(100)
      missing = await missingEnds()
    }
  }
  await Promise.all([watcher(), ...Array.from({ length: 24 }, caller)])
  expect(errors).toEqual([])
  expect(missing).toEqual([])
  await db.owner.query('SELECT make_missing_deliveries(1000000)')
  expect(await verifyLedger(db.database.pool)).toEqual([])
  // Also those that a shared statement began again after.
  await db.owner.query('SELECT pg_stat_force_next_flush()')
  const { rows } = await db.owner.query(
    'SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()',
  )
  expect(rows).toEqual([{ deadlocks: 0 }])
})
