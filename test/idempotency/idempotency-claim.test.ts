import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { borrow } from '../kit/client.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'
import { makeMerchant } from '../kit/merchants.ts'

let db: TestDatabase
beforeAll(async () => {
  db = await createTestDatabase()
})
afterAll(() => db.drop())

const digest = Buffer.alloc(32, 1)

async function claim(client: pg.Pool | pg.PoolClient, merchantId: number, leaseMs: number): Promise<string> {
  const { rows } = await client.query<{ outcome: string }>(
    `SELECT outcome FROM claim_idempotency_key($1, 'pay', 'order-1', $2, $3, $4, 86400000)`,
    [merchantId, digest, randomBytes(16), leaseMs],
  )
  return rows[0]?.outcome ?? 'nothing'
}

test('of many callers that resume a request whose process died, exactly one does', async () => {
  const { merchantId } = await makeMerchant(db.owner)
  // Its lease ends at once, as if the process that held it were dead.
  expect(await claim(db.owner, merchantId, 0)).toBe('begun')
  const holder = await borrow(db.owner)
  await holder.query('BEGIN')
  await holder.query('SELECT FROM idempotency_key WHERE merchant_id = $1 FOR UPDATE', [merchantId])
  const others = Array.from({ length: 5 }, () => claim(db.database.pool, merchantId, 60_000))
  // Each waits to read the claim; without the lock each would have read it and would wait to take it.
  await db.untilWaiting(others.length)
  await holder.query('COMMIT')
  holder.release()
  const outcomes = await Promise.all(others)
  expect(outcomes.toSorted()).toEqual(['resumed', 'running', 'running', 'running', 'running'])
})
