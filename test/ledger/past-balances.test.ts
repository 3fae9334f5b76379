import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import { readBalanceAt, readStatement } from '../../src/ledger/statement.ts'
import { borrow, withClient } from '../kit/client.ts'
import { corrupt } from '../kit/corrupt.ts'
import { useTestDatabase } from '../kit/database.ts'
import { makeMerchant } from '../kit/merchants.ts'
import { fundMerchant, problemsOf } from '../kit/money.ts'
import { passOver } from '../kit/passes.ts'
import { randomFrom } from '../kit/random.ts'
import { seed } from '../kit/seeds.ts'

const db = await useTestDatabase()
const { owner } = db
const { pool } = db.database

/** The kinds of entries that the tests write. */
const sides = [
  ['fund', 'funding', 'available'],
  ['reserve', 'available', 'reserved'],
  ['post', 'reserved', 'clearing_operator_a'],
  ['shortfall', 'suspense', 'clearing_operator_a'],
] as const

interface Written {
  kind: number
  amount: number
  /** Milliseconds after `start`. */
  at: number
}

const start = Date.UTC(2026, 0, 1)
const momentOf = (at: number) => new Date(start + at)
let statements = 0

/** Writes entries by one statement, each with its own time. */
async function write(client: pg.Pool | pg.PoolClient, merchantId: number, entries: Written[]): Promise<void> {
  await client.query(
    `INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
     SELECT $1, 'past:' || $2 || ':' || n, step, debit, credit, amount, at
     FROM unnest($3::ledger_step[], $4::ledger_account[], $5::ledger_account[], $6::bigint[],
       $7::timestamptz[]) WITH ORDINALITY AS e (step, debit, credit, amount, at, n)`,
    [
      merchantId,
      (statements += 1),
      ...[0, 1, 2].map((side) => entries.map(({ kind }) => sides[kind]?.[side])),
      entries.map(({ amount }) => amount),
      entries.map(({ at }) => momentOf(at)),
    ],
  )
}

/** Numbers below `bound`, the same for each run of a test. */
function randomNumbers(nth: number): (bound: number) => number {
  const random = randomFrom(seed + nth)
  return (bound) => Math.floor(random() * bound)
}

/** The merchant's balances and totals before a moment, as the sums of all entries before it. */
async function summed(merchantId: number, at: Date) {
  type Sums = Record<'available' | 'reserved' | 'receivable' | 'totalIn' | 'totalOut', bigint>
  const { rows } = await owner.query<Sums>(
    `SELECT coalesce(sum(available), 0)::bigint AS available, coalesce(sum(reserved), 0)::bigint AS reserved,
       coalesce(sum(receivable), 0)::bigint AS receivable,
       coalesce(sum(greatest(available + reserved, 0)), 0)::bigint AS "totalIn",
       coalesce(sum(greatest(-available - reserved, 0)), 0)::bigint AS "totalOut"
     FROM (SELECT amount * ((credit = 'available')::int - (debit = 'available')::int) AS available,
         amount * ((credit = 'reserved')::int - (debit = 'reserved')::int) AS reserved,
         amount * ((debit = 'suspense')::int - (credit = 'suspense')::int) AS receivable
       FROM ledger_entry WHERE merchant_id = $1 AND created_at < $2) AS e`,
    [merchantId, at],
  )
  const [sums] = rows
  if (!sums) throw new Error('No sums.')
  const { available, reserved, receivable, totalIn, totalOut } = sums
  return { holdings: { balance: available + reserved, available, reserved, receivable }, totalIn, totalOut }
}

async function snapshotsOf(merchantId: number): Promise<Date[]> {
  const { rows } = await owner.query<{ at: Date }>(
    'SELECT at FROM balance_snapshot WHERE merchant_id = $1 ORDER BY at',
    [merchantId],
  )
  return rows.map(({ at }) => at)
}

/** Compares all answers about these moments, and all snapshots, with sums of all entries. */
async function expectExact(merchantId: number, moments: readonly Date[]): Promise<void> {
  let from = { at: new Date(0), ...(await summed(merchantId, new Date(0))) }
  for (const at of moments.toSorted((a, b) => a.getTime() - b.getTime())) {
    const { holdings, totalIn, totalOut } = await summed(merchantId, at)
    expect(await readBalanceAt(pool, merchantId, at)).toMatchObject(holdings)
    expect(await readStatement(pool, merchantId, { from: from.at, to: at })).toEqual({
      from: from.at,
      to: at,
      opening: from.holdings,
      closing: holdings,
      totalIn: totalIn - from.totalIn,
      totalOut: totalOut - from.totalOut,
    })
    from = { at, holdings, totalIn, totalOut }
  }
  const whole = await summed(merchantId, new Date(Date.UTC(9_000, 0)))
  const { opening, closing, ...totals } = await readStatement(pool, merchantId, { from: from.at, to: null })
  expect([opening, closing]).toEqual([from.holdings, whole.holdings])
  expect(totals).toMatchObject({
    totalIn: whole.totalIn - from.totalIn,
    totalOut: whole.totalOut - from.totalOut,
  })
  expect((await problemsOf(pool, merchantId)).filter((problem) => problem.includes('snapshot'))).toEqual([])
}

test.each([1, 2, 3, 4, 5, 6])(
  'statement and balance(at) are the sums of all entries, over a random history (%i)',
  async (nth) => {
    const random = randomNumbers(nth)
    const { merchantId } = await makeMerchant(pool)
    const other = await makeMerchant(pool)
    // Enough money for all that follows, so that no entry makes a balance negative.
    await write(owner, merchantId, [{ kind: 0, amount: 90_000_000, at: 0 }])
    await write(owner, merchantId, [{ kind: 1, amount: 40_000_000, at: 1 }])
    let now = 10
    for (let statement = 0; statement < 60; statement += 1) {
      now += random(50)
      const entries = Array.from({ length: 1 + random(random(5) === 0 ? 300 : 40) }, () => ({
        kind: random(3),
        amount: 1 + random(9_000),
        // Most entries are of this moment; some belong to an earlier one.
        at: random(4) === 0 ? Math.max(now - random(400), 2) : now,
      }))
      await write(owner, merchantId, entries)
      if (random(3) === 0) await write(owner, other.merchantId, [{ kind: 0, amount: 5, at: now }])
    }
    const snapshots = await snapshotsOf(merchantId)
    expect(snapshots.length).toBeGreaterThan(4)
    expect(await snapshotsOf(other.merchantId)).toEqual([])
    const around = snapshots.flatMap((at) => [-1, 0, 1].map((by) => new Date(at.getTime() + by)))
    const anywhere = Array.from({ length: 15 }, () => momentOf(random(now + 10)))
    await expectExact(merchantId, [...around, ...anywhere])
    await expectExact(other.merchantId, [momentOf(now >> 1), momentOf(now)])
  },
)

test('a debt is part of a snapshot, and so is the entry that pays it', async () => {
  const { merchantId } = await makeMerchant(pool)
  await write(
    owner,
    merchantId,
    Array.from({ length: 300 }, (_, at) => ({ kind: 3, amount: 10, at })),
  )
  // The money pays the debt of 3,000 at once.
  await fundMerchant(pool, merchantId, 5_000n)
  await write(
    owner,
    merchantId,
    Array.from({ length: 300 }, (_, at) => ({ kind: 0, amount: 1, at: at * 86_400_000 })),
  )
  const snapshots = await snapshotsOf(merchantId)
  expect(snapshots).toHaveLength(2)
  await expectExact(merchantId, [...snapshots, momentOf(100), new Date(Date.now() + 1_000)])
})

test('an entry that commits after a snapshot of a later moment is part of it', async () => {
  const { merchantId } = await makeMerchant(pool)
  const held = await borrow(owner)
  await held.query('BEGIN')
  await held.query('SELECT now()')
  await new Promise((resolve) => setTimeout(resolve, 20))
  await owner.query(
    `INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
     SELECT $1, 'held:' || n, 'fund', 'funding', 'available', 100, service_now()
     FROM generate_series(1, 256) AS n`,
    [merchantId],
  )
  const [snapshot = new Date(0)] = await snapshotsOf(merchantId)
  await expectExact(merchantId, [snapshot])
  expect(await readBalanceAt(pool, merchantId, snapshot)).toMatchObject({ available: 0n })
  await held.query(`SELECT fund_merchant($1, 'funding:held', 7)`, [merchantId])
  expect(await readBalanceAt(pool, merchantId, snapshot)).toMatchObject({ available: 0n })
  await held.query('COMMIT')
  expect(await readBalanceAt(pool, merchantId, snapshot)).toMatchObject({ available: 7n })
  await expectExact(merchantId, [snapshot, new Date(snapshot.getTime() + 1)])
  held.release(true)
})

test('an entry that waits for the transaction that writes a snapshot is part of it', async () => {
  const { merchantId } = await makeMerchant(pool)
  const [early, writer] = [await borrow(owner), await borrow(owner)]
  await early.query('BEGIN')
  await early.query('SELECT now()')
  await new Promise((resolve) => setTimeout(resolve, 20))
  await writer.query('BEGIN')
  await writer.query(
    `INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
     SELECT $1, 'waits:' || n, 'fund', 'funding', 'available', 100, service_now()
     FROM generate_series(1, 256) AS n`,
    [merchantId],
  )
  const late = early.query(`SELECT fund_merchant($1, 'funding:early', 7)`, [merchantId])
  await db.untilWaiting()
  await writer.query('COMMIT')
  await late
  await early.query('COMMIT')
  const [snapshot = new Date(0)] = await snapshotsOf(merchantId)
  expect(await readBalanceAt(pool, merchantId, snapshot)).toMatchObject({ available: 7n })
  await expectExact(merchantId, [snapshot])
  early.release(true)
  writer.release(true)
})

test('many writers at once leave exact snapshots', async () => {
  const { merchantId } = await makeMerchant(pool)
  const moments: Date[] = []
  await Promise.all(
    Array.from({ length: 8 }, async (_, writer) => {
      for (let turn = 0; turn < 12; turn += 1) {
        await owner.query(
          `INSERT INTO ledger_entry (merchant_id, origin, step, debit, credit, amount, created_at)
           SELECT $1, 'crowd:' || $2 || ':' || n, 'fund', 'funding', 'available', n, service_now()
           FROM generate_series(1, 20) AS n`,
          [merchantId, writer * 100 + turn],
        )
        moments.push(new Date())
      }
    }),
  )
  const snapshots = await snapshotsOf(merchantId)
  expect(snapshots.length).toBeGreaterThan(3)
  await expectExact(merchantId, [...snapshots, ...moments.slice(0, 20)])
})

/** The blocks that a statement reads, of tables and indexes. */
function blocksOf(query: string, values: unknown[]): Promise<number> {
  return withClient(owner, async (client) => {
    const plan = () =>
      client.query<{ 'QUERY PLAN': [{ Plan: Record<string, number> }] }>(
        `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${query}`,
        values,
      )
    // The first run also reads the catalogue.
    await plan()
    const { rows } = await plan()
    const { Plan: read = {} } = rows[0]?.['QUERY PLAN'][0] ?? {}
    return (read['Shared Hit Blocks'] ?? 0) + (read['Shared Read Blocks'] ?? 0)
  })
}

test('a statement reads as many blocks after 10,000 entries as after 1,000', async () => {
  const { merchantId } = await makeMerchant(pool)
  const hour = 3_600_000
  let written = 0
  async function grow(until: number): Promise<[statement: number, balance: number]> {
    for (; written < until; written += 100) {
      const entries = Array.from({ length: 100 }, (_, n) => ({
        kind: 0,
        amount: 10,
        at: (written + n) * hour,
      }))
      await write(owner, merchantId, entries)
    }
    await owner.query('VACUUM (ANALYZE) ledger_entry, balance_snapshot, merchant_balance')
    const [from, to] = [momentOf((until / 4) * hour), momentOf((until / 2) * hour)]
    return [
      await blocksOf('SELECT * FROM statement_of($1, $2, $3)', [merchantId, from, to]),
      await blocksOf('SELECT * FROM balance_at($1, $2)', [merchantId, from]),
    ]
  }
  const [small, large] = [await grow(1_000), await grow(10_000)]
  expect(large[0]).toBeLessThanOrEqual(small[0] * 1.5)
  expect(large[1]).toBeLessThanOrEqual(small[1] * 1.5)
})

describe('the proof finds a wrong snapshot', () => {
  test('at once, where entries are new, and by the rolling pass, where they are old', async () => {
    const { merchantId } = await makeMerchant(pool)
    await write(
      owner,
      merchantId,
      Array.from({ length: 300 }, (_, at) => ({ kind: 0, amount: 10, at })),
    )
    expect((await problemsOf(pool, merchantId)).filter((problem) => problem.includes('snapshot'))).toEqual([])
    const changed = await corrupt(
      owner,
      'UPDATE balance_snapshot SET available = available + 1, total_in = total_in + 1 WHERE merchant_id = $1',
      [merchantId],
    )
    expect(changed).toBe(1)
    const found = expect.objectContaining({
      invariant: 'balances_equal_entries',
      merchantId,
      problem: expect.stringMatching(/^the snapshot of .* says 2991, 0, 0.* its entries say 2990, 0, 0/),
    })
    expect(await problemsOf(pool, merchantId)).toContainEqual(expect.stringMatching(/^the snapshot of/))
    const recent = await owner.query(
      'SELECT invariant, merchant_id AS "merchantId", problem FROM audit_recent(NULL, NULL)',
    )
    expect(recent.rows).toContainEqual(found)
    await owner.query(`INSERT INTO audit_point (next_ledger_entry_id, next_event_id, whole_proven_at)
      VALUES (0, 0, now() - interval '25 hours')`)
    expect(await passOver(db, 1_000)).toContainEqual(found)
  })

  test('that does not agree with its own totals is refused by the database', async () => {
    const change = corrupt(owner, 'UPDATE balance_snapshot SET available = available + 1')
    await expect(change).rejects.toMatchObject({ constraint: 'balance_snapshot_totals' })
  })
})
