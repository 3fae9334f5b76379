import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import { regenerateApiKey, revokeApiKey } from '../../src/identity/keys/api-keys.ts'
import { openSharedStatements, shareStatement } from '../../src/database/shared-statements.ts'
import { borrow } from '../kit/client.ts'
import { deactivate, makeMerchant, master, type SignedInMerchant } from '../kit/merchants.ts'
import {
  type PaymentItem,
  type Collected,
  collectMany,
  eventTypes,
  item,
  openCollection,
} from '../kit/money.ts'
import { useTestDatabase } from '../kit/database.ts'

const db = await useTestDatabase()
const { pool } = db.database

async function rowsOf(
  merchantId: number,
): Promise<{ transactions: bigint; requests: bigint; events: bigint }> {
  const { rows } = await db.owner.query<{ transactions: bigint; requests: bigint; events: bigint }>(
    `SELECT (SELECT count(*) FROM transaction WHERE merchant_id = $1) AS transactions,
       (SELECT count(*) FROM operator_request WHERE merchant_id = $1) AS requests,
       (SELECT count(*) FROM event WHERE merchant_id = $1) AS events`,
    [merchantId],
  )
  return rows[0] ?? { transactions: 0n, requests: 0n, events: 0n }
}
const nothing = { transactions: 0n, requests: 0n, events: 0n }

test('a collection is a transaction, a request and an event, together', async () => {
  const merchant = await makeMerchant(pool)
  const { transactionId, requestId } = await openCollection(pool, merchant)
  const { rows } = await db.owner.query(
    `SELECT t.status, t.amount, t.settled_amount, r.id, r.state, r.attempt, r.amount AS asked,
       t.expires_at - t.created_at = interval '24 hours' AS day,
       r.fence_until BETWEEN now() + interval '25 seconds' AND now() + interval '30 seconds' AS fenced,
       r.next_check_at BETWEEN now() + interval '5 seconds' AND now() + interval '12 seconds' AS soon
     FROM transaction t JOIN operator_request r ON r.transaction_id = t.id WHERE t.id = $1`,
    [transactionId],
  )
  expect(rows).toEqual([
    {
      status: 'pending',
      amount: 5_000n,
      settled_amount: null,
      id: requestId,
      state: 'sending',
      attempt: 1,
      asked: 5_000n,
      day: true,
      fenced: true,
      soon: true,
    },
  ])
  expect(await eventTypes(pool, merchant.merchantId)).toEqual(['payment_pending'])
})

test('of equal references in one call the first is made, the others are duplicates', async () => {
  const [a, b] = [await makeMerchant(pool), await makeMerchant(pool)]
  const answers = await collectMany(pool, [
    item(a, { reference: 'ORDER-1' }),
    item(b, { reference: 'ORDER-1' }),
    item(a, { reference: 'ORDER-1', amount: 7_000n }),
    item(a, { reference: 'ORDER-2' }),
    item(a, { reference: 'ORDER-1' }),
  ])
  expect(answers.map((answer) => answer.outcome)).toEqual(['made', 'made', 'duplicate', 'made', 'duplicate'])
  expect(answers.map((answer) => answer.transactionId !== null)).toEqual([true, true, false, true, false])
  expect(await rowsOf(a.merchantId)).toEqual({ transactions: 2n, requests: 2n, events: 2n })
})

test('over parallel calls each reference is made once, in any order inside the calls', async () => {
  const merchant = await makeMerchant(pool)
  const references = Array.from({ length: 30 }, (_, n) => `race-${n}`)
  const calls = await Promise.all(
    Array.from({ length: 8 }, (_, n) => {
      const order = n % 2 ? references : references.toReversed()
      return collectMany(
        pool,
        order.map((reference) => item(merchant, { reference })),
      )
    }),
  )
  const outcomes = calls.flat().map((answer) => answer.outcome)
  expect(outcomes.filter((outcome) => outcome === 'made')).toHaveLength(30)
  expect(outcomes.filter((outcome) => outcome === 'duplicate')).toHaveLength(7 * 30)
  expect(await rowsOf(merchant.merchantId)).toEqual({ transactions: 30n, requests: 30n, events: 30n })
})

describe('unauthenticated, and nothing is written', () => {
  test('with a revoked key', async () => {
    const merchant = await makeMerchant(pool)
    await revokeApiKey(pool, merchant)
    expect(await collectMany(pool, [item(merchant)])).toMatchObject([{ outcome: 'unauthenticated' }])
    expect(await rowsOf(merchant.merchantId)).toEqual(nothing)
  })

  test('with a key that was regenerated since', async () => {
    const merchant = await makeMerchant(pool)
    await regenerateApiKey(pool, master, merchant)
    expect(await collectMany(pool, [item(merchant)])).toMatchObject([{ outcome: 'unauthenticated' }])
    expect(await rowsOf(merchant.merchantId)).toEqual(nothing)
    expect(await collectMany(pool, [item(merchant, { apiKeyVersion: 2 })])).toMatchObject([
      { outcome: 'made' },
    ])
  })

  test('for an inactive merchant', async () => {
    const merchant = await makeMerchant(pool)
    await deactivate(pool, merchant.merchantId)
    expect(await collectMany(pool, [item(merchant)])).toMatchObject([{ outcome: 'unauthenticated' }])
    expect(await rowsOf(merchant.merchantId)).toEqual(nothing)
  })

  test('with the key of another merchant', async () => {
    const [a, b] = [await makeMerchant(pool), await makeMerchant(pool)]
    const stolen = item(a, { apiKeyId: b.apiKeyId })
    expect(await collectMany(pool, [stolen])).toMatchObject([{ outcome: 'unauthenticated' }])
    expect(await rowsOf(a.merchantId)).toEqual(nothing)
  })

  test('and a dead key takes no reference away from a valid one in the same call', async () => {
    const merchant = await makeMerchant(pool)
    await regenerateApiKey(pool, master, merchant)
    const answers = await collectMany(pool, [
      item(merchant, { reference: 'SAME' }),
      item(merchant, { reference: 'SAME', apiKeyVersion: 2 }),
      item(merchant, { reference: 'SAME', apiKeyVersion: 2 }),
    ])
    expect(answers.map((answer) => answer.outcome)).toEqual(['unauthenticated', 'made', 'duplicate'])
  })
})

test('one bad item fails alone', async () => {
  const merchant = await makeMerchant(pool)
  const sharedStatements = openSharedStatements(pool)
  const statement = shareStatement<PaymentItem, Collected>((on, items) => collectMany(on, items))
  const items = Array.from({ length: 20 }, (_, n) => item(merchant, n === 7 ? { amount: 99n } : {}))
  const answers = await Promise.allSettled(items.map((each) => sharedStatements.run(statement, each)))
  expect(answers.map((answer) => answer.status === 'fulfilled')).toEqual(items.map((_, n) => n !== 7))
  expect(answers[7]).toMatchObject({ reason: { code: '23514' } })
  expect(await rowsOf(merchant.merchantId)).toEqual({ transactions: 19n, requests: 19n, events: 19n })
})

/** Runs `work` in a transaction of its own that stays open until `end` is called. */
async function heldOpen(
  work: (client: pg.PoolClient) => Promise<unknown>,
): Promise<{ end(): Promise<void> }> {
  const client = await borrow(pool)
  await client.query('BEGIN')
  await work(client)
  return {
    async end() {
      await client.query('COMMIT')
      client.release()
    },
  }
}

/** The ways in which a merchant's access ends, each with its statement. */
const endings: readonly [
  string,
  (client: pg.Pool | pg.PoolClient, shop: SignedInMerchant) => Promise<unknown>,
][] = [
  ['regenerated', (client, shop) => regenerateApiKey(client, master, shop)],
  ['revoked', (client, shop) => revokeApiKey(client, shop)],
  ['deactivated', (client, shop) => deactivate(client, shop.merchantId)],
]

test.each(endings)(
  '%s is answered once the running collections have committed, not before',
  async (_how, end) => {
    const merchant = await makeMerchant(pool)
    const money = await heldOpen((client) => collectMany(client, [item(merchant)]))
    let answered = false
    const ended = end(pool, merchant).then(() => (answered = true))
    await db.untilWaiting()
    expect(answered).toBe(false)
    await money.end()
    await ended
    expect(await rowsOf(merchant.merchantId)).toMatchObject({ transactions: 1n })
  },
)

test.each(endings)(
  'a collection while access is being %s waits, and then moves nothing',
  async (_how, end) => {
    const merchant = await makeMerchant(pool)
    const ending = await heldOpen((client) => end(client, merchant))
    const late = collectMany(pool, [item(merchant)])
    await db.untilWaiting()
    await ending.end()
    expect(await late).toMatchObject([{ outcome: 'unauthenticated' }])
    expect(await rowsOf(merchant.merchantId)).toEqual(nothing)
  },
)

test('a merchant whose access does not change does not wait', async () => {
  const [busy, other] = [await makeMerchant(pool), await makeMerchant(pool)]
  const ending = await heldOpen((client) => regenerateApiKey(client, master, busy))
  expect(await collectMany(pool, [item(other)])).toMatchObject([{ outcome: 'made' }])
  await ending.end()
})
