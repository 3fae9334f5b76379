import { beforeEach, describe, expect, test } from 'vitest'
import { openSharedStatements } from '../../src/database/shared-statements.ts'
import { claimDue, claimOne, recordRequest } from '../../src/requests/store.ts'
import { borrow } from '../kit/client.ts'
import { useTestDatabase } from '../kit/database.ts'
import { makeMerchant } from '../kit/merchants.ts'
import { openCollection, settleMany } from '../kit/money.ts'
import { randomFrom } from '../kit/random.ts'
import { seed } from '../kit/seeds.ts'

const db = await useTestDatabase()
const { pool } = db.database
const other = db.secondProcess()
const merchant = await makeMerchant(pool)

/** The beginning of the test; no time in it depends on how long the test takes. */
let begun = ''
beforeEach(async () => {
  await db.owner.query('UPDATE operator_request SET next_check_at = NULL; DELETE FROM request_due')
  const { rows } = await db.owner.query<{ now: string }>(
    `SELECT date_trunc('milliseconds', now())::text AS now`,
  )
  begun = rows[0]?.now ?? ''
})

/** Seconds from `begun` to the due row and to `next_check_at`; null where there is none. */
async function timesOf(id: bigint): Promise<{ row: number | null; next: number | null } | undefined> {
  const { rows } = await db.owner.query<{ row: number | null; next: number | null }>(
    `SELECT extract(epoch FROM d.at - $2::timestamptz)::float8 AS row,
       extract(epoch FROM r.next_check_at - $2::timestamptz)::float8 AS next
     FROM operator_request r LEFT JOIN request_due d ON d.request_id = r.id WHERE r.id = $1`,
    [id, begun],
  )
  return rows[0]
}

async function makeDueIn(seconds: number | null, ...ids: bigint[]): Promise<void> {
  await db.owner.query(
    `UPDATE operator_request SET next_check_at = $3::timestamptz + $1 * interval '1 s' WHERE id = ANY ($2)`,
    [seconds, ids, begun],
  )
}

async function open(count: number): Promise<bigint[]> {
  const made = await Promise.all(Array.from({ length: count }, () => openCollection(pool, merchant)))
  return made.map(({ requestId }) => requestId)
}

async function openOne(): Promise<bigint> {
  const [id] = await open(1)
  if (id === undefined) throw new Error('no request was made')
  return id
}

/** A claim makes its request due again 30 s later, and its due row as well. */
async function expectClaimed(id: bigint): Promise<void> {
  const { row, next } = (await timesOf(id)) ?? {}
  expect(next).toBeGreaterThanOrEqual(30)
  expect(row).toBe(next)
}

describe('a due row', () => {
  test('is written with its request, moves when the request is due earlier, and not when later', async () => {
    const id = await openOne()
    const made = await timesOf(id)
    expect(made?.row).toBe(made?.next)
    await makeDueIn(500, id)
    expect(await timesOf(id)).toEqual({ row: made?.row, next: 500 })
    await makeDueIn(3, id)
    expect(await timesOf(id)).toEqual({ row: 3, next: 3 })
    await makeDueIn(null, id)
    expect(await timesOf(id)).toEqual({ row: 3, next: null })
    await makeDueIn(1, id)
    expect(await timesOf(id)).toEqual({ row: 1, next: 1 })
  })

  test('that is early is moved by the claim, or deleted if the service asks no more', async () => {
    const [late, over, due] = await open(3)
    if (!late || !over || !due) throw new Error('no request was made')
    await makeDueIn(-5, late, over, due)
    await makeDueIn(600, late)
    await makeDueIn(null, over)
    expect((await claimDue(pool, 'OperatorA', 1)).map(({ id }) => id)).toEqual([due])
    expect([await timesOf(late), await timesOf(over)]).toEqual([
      { row: 600, next: 600 },
      { row: null, next: null },
    ])
    await expectClaimed(due)
    await makeDueIn(2, over)
    expect(await timesOf(over)).toEqual({ row: 2, next: 2 })
  })

  test('comes back if a claim has deleted it while a change made its request due', async () => {
    const id = await openOne()
    await makeDueIn(-5, id)
    await makeDueIn(null, id)
    const changing = await borrow(db.owner)
    await changing.query('BEGIN')
    await changing.query(`UPDATE operator_request SET next_check_at = now() - interval '1 s' WHERE id = $1`, [
      id,
    ])
    expect(await claimDue(pool, 'OperatorA', 5)).toEqual([])
    await changing.query('COMMIT')
    changing.release()
    expect((await claimDue(pool, 'OperatorA', 5)).map((request) => request.id)).toEqual([id])
  })

  test('is never later than its request, over random histories of two processes', async () => {
    const random = randomFrom(seed)
    const ids = await open(12)
    const below = (bound: number) => Math.floor(random() * bound)
    const act = async () => {
      const id = ids[below(ids.length)] ?? 0n
      const from = random() < 0.5 ? pool : other.pool
      const kind = below(5)
      if (kind === 0) await claimDue(from, 'OperatorA', 1 + below(4))
      else if (kind === 1) await makeDueIn(random() < 0.3 ? null : below(8) - 4, id)
      else if (kind === 2) await db.owner.query('UPDATE operator_request SET query_after = NULL')
      else if (kind === 3) await recordRequest(openSharedStatements(from), resultOf(id, below(4_000)))
      else await makeDueIn(below(100), id)
    }
    for (let round = 0; round < 30; round += 1) {
      await Promise.all(Array.from({ length: 6 }, act))
      const { rows } = await db.owner.query(
        `SELECT r.id, r.next_check_at, d.at
         FROM operator_request r LEFT JOIN request_due d ON d.request_id = r.id
         WHERE r.next_check_at IS NOT NULL AND (d.at <= r.next_check_at) IS NOT TRUE`,
      )
      expect(rows).toEqual([])
    }
    await db.owner.query('UPDATE operator_request SET query_after = NULL')
    await makeDueIn(-1, ...ids)
    expect(await claimDue(pool, 'OperatorA', 50)).toHaveLength(ids.length)
  })
})

function resultOf(id: bigint, nextCheckMs: number) {
  return { id, attempt: 1, state: 'doubt', handle: {}, nextCheckMs, paymentUrl: null } as const
}

test('the proof of the books reports an open payment whose due row is missing', async () => {
  const { transactionId, requestId } = await openCollection(pool, merchant)
  await db.owner.query('DELETE FROM request_due WHERE request_id = $1', [requestId])
  const { rows } = await db.owner.query(
    'SELECT invariant FROM audit_collection_requests(ARRAY[$1::bigint])',
    [transactionId],
  )
  expect(rows).toEqual([{ invariant: 'statuses_agree_with_requests' }])
  await makeDueIn(1, requestId)
})

describe('a claim', () => {
  test('passes 150 early due rows, and requests that another session has locked', async () => {
    const early = await open(150)
    await makeDueIn(-9, ...early)
    const due = await open(6)
    await makeDueIn(-5, ...due)
    await makeDueIn(null, ...early)
    const holder = await borrow(db.owner)
    await holder.query('BEGIN')
    await holder.query('SELECT FROM operator_request WHERE id = ANY ($1) FOR UPDATE', [
      [...early.slice(0, 40), ...due.slice(0, 2)],
    ])
    const claimed = await claimDue(pool, 'OperatorA', 3)
    expect(claimed).toHaveLength(3)
    expect(due.slice(2)).toEqual(expect.arrayContaining(claimed.map(({ id }) => id)))
    await holder.query('ROLLBACK')
    holder.release()
  })

  test('of one transaction leaves its due row early enough', async () => {
    const { transactionId, requestId } = await openCollection(pool, merchant)
    await makeDueIn(900, requestId)
    await db.owner.query(`UPDATE request_due SET at = now() + interval '900 s' WHERE request_id = $1`, [
      requestId,
    ])
    expect(await claimOne(pool, transactionId)).toMatchObject({ id: requestId })
    await expectClaimed(requestId)
  })
})

test('no update of a request changes an index', async () => {
  const sharedStatements = openSharedStatements(pool)
  for (let life = 0; life < 10; life += 1) {
    const { transactionId, requestId } = await openCollection(pool, merchant)
    await recordRequest(sharedStatements, { ...resultOf(requestId, 60_000), state: 'accepted' })
    await claimOne(pool, transactionId)
    await settleMany(pool, [{ id: transactionId, to: 'success' }])
  }
  const { rows } = await db.owner.query(
    `SELECT DISTINCT a.attname AS name FROM pg_index i
     JOIN pg_attribute a ON a.attrelid = i.indrelid AND (a.attnum = ANY (i.indkey) OR EXISTS (
       SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
         AND d.refobjid = i.indrelid AND d.refobjsubid = a.attnum))
     WHERE i.indrelid = 'operator_request'::regclass ORDER BY name`,
  )
  expect(rows.map(({ name }) => name)).toEqual([
    'correlation_id',
    'id',
    'payout_id',
    'recipient_id',
    'transaction_id',
  ])
  await pool.query('SELECT pg_stat_force_next_flush(), pg_sleep(0.05)')
  const { rows: counts } = await db.owner.query<{ other: bigint; updates: bigint }>(
    `SELECT n_tup_upd AS updates, n_tup_upd - n_tup_hot_upd - n_tup_newpage_upd AS other
     FROM pg_stat_user_tables WHERE relname = 'operator_request'`,
  )
  expect(counts[0]).toMatchObject({ other: 0n })
})
