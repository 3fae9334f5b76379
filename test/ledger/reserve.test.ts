import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openBatches } from '../../src/database/batch.ts'
import { openDatabase } from '../../src/database/client.ts'
import { serviceRole } from '../../src/database/migrate.ts'
import { readBalance } from '../../src/ledger/balance.ts'
import { endReservation, fund, reserve } from '../../src/ledger/post.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { balanceOf, fundedMerchant, problemsOf } from './money.ts'

let db: TestDatabase
let pool: pg.Pool
/** A second process. */
let other: ReturnType<typeof openDatabase>
let causes = 0
const cause = () => `payout:${(causes += 1)}`

beforeAll(async () => {
  db = await createTestDatabase()
  pool = db.database.pool
  other = openDatabase({ connection: db.connection, poolMax: 10, role: serviceRole, log: () => {} })
})
afterAll(async () => {
  await other.close()
  await db.drop()
})

async function reserveMany(
  items: readonly (readonly [merchantId: number, cause: string, amount: bigint])[],
  from: pg.Pool = pool,
): Promise<boolean[]> {
  const { rows } = await from.query<{ reserved: boolean }>('SELECT reserved FROM reserve_many($1, $2, $3)', [
    items.map((i) => i[0]),
    items.map((i) => i[1]),
    items.map((i) => i[2]),
  ])
  return rows.map((row) => row.reserved)
}

test('50 parallel reservations of 1,000 on 10,000: exactly 10, and never below zero', async () => {
  const { merchantId } = await fundedMerchant(pool, 10_000n)
  const batches = [openBatches(pool), openBatches(other.pool)]
  let watching = true
  const seen: bigint[] = []
  const watcher = (async () => {
    while (watching) seen.push((await balanceOf(db.owner, merchantId)).available)
  })()
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, n) => {
      const reservation = { merchantId, cause: cause(), amount: 1_000n }
      // Some share a statement, some come alone from another process.
      const lane = batches[n % 2]
      return n % 5 === 0 || !lane
        ? reserveMany([[merchantId, reservation.cause, 1_000n]], other.pool).then((all) => all[0])
        : reserve(lane, reservation)
    }),
  )
  watching = false
  await watcher
  expect(answers.filter(Boolean)).toHaveLength(10)
  expect(seen.every((available) => available >= 0n && available <= 10_000n)).toBe(true)
  expect(await readBalance(pool, merchantId)).toMatchObject({
    available: 0n,
    reserved: 10_000n,
    balance: 10_000n,
  })
  expect(await problemsOf(pool, merchantId)).toEqual([])
})

test('a reservation waits for one under way and counts with what that one leaves', async () => {
  const { merchantId } = await fundedMerchant(pool, 10_000n)
  const first = await pool.connect()
  await first.query('BEGIN')
  await first.query('SELECT * FROM reserve_many($1, $2, $3)', [[merchantId], [cause()], [8_000n]])
  const second = reserveMany([[merchantId, cause(), 5_000n]], other.pool)
  const third = reserveMany([[merchantId, cause(), 2_000n]], other.pool)
  await db.owner.query('SELECT pg_sleep(0.05)')
  await first.query('COMMIT')
  first.release()
  expect(await Promise.all([second, third])).toEqual([[false], [true]])
  expect(await balanceOf(pool, merchantId)).toEqual({ available: 0n, reserved: 10_000n })
})

test('in one call the first that are covered get the money, in order of arrival', async () => {
  const a = await fundedMerchant(pool, 5_000n)
  const b = await fundedMerchant(pool, 1_000n)
  const answers = await reserveMany([
    [a.merchantId, cause(), 3_000n],
    [b.merchantId, cause(), 1_000n],
    [a.merchantId, cause(), 2_500n],
    [b.merchantId, cause(), 1n],
    [a.merchantId, cause(), 2_000n],
    [a.merchantId, cause(), 1n],
  ])
  expect(answers).toEqual([true, true, false, false, true, false])
  expect(await balanceOf(pool, a.merchantId)).toEqual({ available: 0n, reserved: 5_000n })
  expect(await problemsOf(pool, a.merchantId, b.merchantId)).toEqual([])
})

test('a cause reserves once, in one call and over many', async () => {
  const { merchantId } = await fundedMerchant(pool, 10_000n)
  const once = cause()
  const twice = [merchantId, once, 1_000n] as const
  expect(await reserveMany([twice, twice])).toEqual([true, true])
  const parallel = await Promise.all(
    Array.from({ length: 20 }, (_, n) => reserveMany([twice], n % 2 ? pool : other.pool)),
  )
  expect(parallel.flat()).toEqual(Array(20).fill(true))
  expect(await balanceOf(pool, merchantId)).toEqual({ available: 9_000n, reserved: 1_000n })
})

test('a cause that reserved something else is not said to be reserved', async () => {
  const a = await fundedMerchant(pool, 10_000n)
  const b = await fundedMerchant(pool, 10_000n)
  const taken = cause()
  expect(await reserveMany([[a.merchantId, taken, 1_000n]])).toEqual([true])
  expect(
    await reserveMany([
      [b.merchantId, taken, 1_000n],
      [a.merchantId, taken, 2_000n],
    ]),
  ).toEqual([false, false])
  expect(await balanceOf(pool, b.merchantId)).toEqual({ available: 10_000n, reserved: 0n })
})

test('nothing is reserved of what is not there: no merchant, no money, no amount', async () => {
  const { merchantId } = await fundedMerchant(pool, 0n)
  expect(await reserveMany([[merchantId, cause(), 1n]])).toEqual([false])
  expect(await reserveMany([[2_000_000_000, cause(), 1n]])).toEqual([false])
  for (const amount of [0n, -1_000n]) {
    await expect(reserveMany([[merchantId, cause(), amount]])).rejects.toMatchObject({ code: '23514' })
  }
  expect(await balanceOf(pool, merchantId)).toEqual({ available: 0n, reserved: 0n })
})

test('post and void race: one of them ends the reservation, once', async () => {
  const { merchantId } = await fundedMerchant(pool, 100_000n)
  const held = Array.from({ length: 20 }, () => cause())
  await reserveMany(held.map((each) => [merchantId, each, 1_000n] as const))
  const batches = [openBatches(pool), openBatches(other.pool)] as const
  const ended = await Promise.all(
    held.map((each) =>
      Promise.all(
        Array.from({ length: 8 }, (_, n) =>
          endReservation(
            batches[n % 2 ? 1 : 0],
            n % 3 ? { cause: each, step: 'void' } : { cause: each, step: 'post', provider: 'OperatorC' },
          ),
        ),
      ),
    ),
  )
  expect(ended.map((answers) => answers.filter(Boolean).length)).toEqual(Array(20).fill(1))
  const { rows } = await db.owner.query<{ posted: bigint }>(
    `SELECT count(*) AS posted FROM movement WHERE cause = ANY ($1) AND step = 'post'
       AND debit = 'reserved' AND credit = 'clearing_operator_c'`,
    [held],
  )
  const posted = rows[0]?.posted ?? 0n
  expect(await balanceOf(pool, merchantId)).toEqual({ available: 100_000n - posted * 1_000n, reserved: 0n })
  expect(await problemsOf(pool, merchantId)).toEqual([])
})

test('what was never reserved cannot end, and a post names its operator', async () => {
  const { merchantId } = await fundedMerchant(pool, 5_000n)
  const batches = openBatches(pool)
  expect(await endReservation(batches, { cause: cause(), step: 'void' })).toBe(false)
  const held = cause()
  await reserve(batches, { merchantId, cause: held, amount: 5_000n })
  const nameless = pool.query('SELECT * FROM end_reservation_many($1, $2::ledger_step[], $3::provider[])', [
    [held],
    ['post'],
    [null],
  ])
  await expect(nameless).rejects.toMatchObject({ code: '23502' })
  const { rows } = await pool.query(
    'SELECT ended FROM end_reservation_many($1, $2::ledger_step[], $3::provider[])',
    [[held], ['credit'], ['OperatorA']],
  )
  expect(rows).toEqual([{ ended: false }])
  expect(await balanceOf(pool, merchantId)).toEqual({ available: 0n, reserved: 5_000n })
})

test('a cause funds once, also when asked at the same moment', async () => {
  const { merchantId } = await fundedMerchant(pool, 0n)
  const once = cause()
  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, n) => fund(n % 2 ? pool : other.pool, merchantId, once, 700n)),
  )
  expect(answers.filter(Boolean)).toHaveLength(1)
  expect(await balanceOf(pool, merchantId)).toEqual({ available: 700n, reserved: 0n })
})

test('no two movements share cause and step, and no cause ends twice', async () => {
  const { merchantId } = await fundedMerchant(pool, 10_000n)
  const move = (name: string, step: string) =>
    db.owner.query(
      `INSERT INTO movement (merchant_id, cause, step, debit, credit, amount, created_at)
       VALUES ($1, $2, $3, 'available', 'reserved', 1, now())`,
      [merchantId, name, step],
    )
  const name = cause()
  await move(name, 'reserve')
  await expect(move(name, 'reserve')).rejects.toMatchObject({ constraint: 'movement_cause_step_key' })
  await move(name, 'post')
  await expect(move(name, 'void')).rejects.toMatchObject({ constraint: 'movement_reservation_end' })
})
