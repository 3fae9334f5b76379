import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { claimSend } from '../../src/requests/store.ts'
import { useTestDatabase } from '../kit/database.ts'
import { collectMany, fundedMerchant, item, openCollection } from '../kit/money.ts'
import { createBatch, openBatch, type Payee, payees } from '../kit/money-bulk.ts'
import {
  beginPayouts,
  createPayouts,
  depositItem,
  depositMany,
  openPayout,
  payoutItem,
} from '../kit/money-out.ts'

// The identity under which an operator is asked is decided with the row and never changes. The executions of
// an operator under it before a restore are asked about, and never sent.

const db = await useTestDatabase()
const { pool } = db.database
const shop = await fundedMerchant(pool, 10_000_000n)

let orphans = 0

interface OrphanFacts {
  provider?: string
  clientRef?: boolean
  /** A collection of 5,000 francs; otherwise a disbursement of 1,000. */
  collects?: boolean
}

async function recordOrphan(identity: string, more: OrphanFacts = {}) {
  orphans += 1
  const named = more.clientRef ? [null, identity] : [identity, null]
  await pool.query(
    `INSERT INTO operator_orphan (provider, kind, correlation_id, client_ref, operator_ref, amount,
       posted_at, statement_day)
     VALUES ($1, CASE WHEN $5 THEN 'collect' ELSE 'disburse' END, $2, $3, $4,
       CASE WHEN $5 THEN 5000 ELSE 1000 END, now(), now())`,
    [more.provider ?? 'OperatorA', ...named, `OP-${orphans}`, more.collects ?? false],
  )
}

async function requestOf(identity: string) {
  const { rows } = await db.owner.query(
    `SELECT state, accepted_at IS NOT NULL AS accepted, next_check_at <= service_now() AS due
     FROM operator_request WHERE correlation_id = $1`,
    [identity],
  )
  return rows[0]
}

const askedAbout = { state: 'accepted', accepted: true, due: true }

async function identitiesOf(batch: number): Promise<string[]> {
  const { rows } = await db.owner.query<{ id: string }>(
    'SELECT correlation_id AS id FROM batch_recipient WHERE batch_id = $1 ORDER BY batch_recipient.id',
    [batch],
  )
  return rows.map(({ id }) => id)
}

test.each(['transaction', 'payout', 'batch_recipient', 'operator_request'])(
  'the identity of a %s never changes',
  async (table) => {
    await openCollection(pool, shop)
    await openPayout(pool, shop)
    await openBatch(pool, shop, payees(1))
    const change = db.owner.query(`UPDATE ${table} SET correlation_id = gen_random_uuid()`)
    await expect(change).rejects.toThrow(/this update is not allowed/)
  },
)

test('requests take the identity of their rows', async () => {
  const [collect, disburse, payout] = [randomUUID(), randomUUID(), randomUUID()]
  await collectMany(pool, [item(shop, { identity: collect })])
  await depositMany(pool, [depositItem(shop, { identity: disburse })])
  await createPayouts(pool, [payoutItem(shop, { identity: payout })])
  await beginPayouts(pool)
  for (const identity of [collect, disburse, payout])
    expect(await requestOf(identity)).toMatchObject({ state: 'sending' })
})

test('recipients take theirs from the seed and their places; a used seed gives others', async () => {
  const seed = randomUUID()
  const make = async (): Promise<string[]> => {
    const recipients: Payee[] = [{}, { account: '+22370000002', provider: 'OperatorB' }]
    const made = await createBatch(pool, shop, recipients, { seed })
    return identitiesOf(made?.batchId ?? 0)
  }
  const [first, second] = [await make(), await make()]
  const { rows } = await db.owner.query<{ id: string }>(
    'SELECT identity_after($1, nth) AS id FROM generate_series(1, 2) AS nth',
    [seed],
  )
  expect(first).toEqual(rows.map(({ id }) => id))
  expect(new Set([...first, ...second]).size).toBe(4)
  for (const id of [...first, ...second])
    expect(id).toMatch(/^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/)
})

test('a retry draft has recipients of its own identities', async () => {
  const made = await createBatch(pool, shop, payees(2))
  const again = await createBatch(pool, shop, payees(2))
  const ids = [...(await identitiesOf(made?.batchId ?? 0)), ...(await identitiesOf(again?.batchId ?? 0))]
  expect(new Set(ids).size).toBe(4)
})

test('an identity that a request or a payout has is not free', async () => {
  const free = async (identity: string) =>
    (await pool.query<{ id: string }>('SELECT free_identity($1) AS id', [identity])).rows[0]?.id
  const unused = randomUUID()
  expect(await free(unused)).toBe(unused)
  await openPayout(pool, shop, { identity: unused })
  const next = (await free(unused)) ?? ''
  expect(next).not.toBe(unused)
  await openCollection(pool, shop, { identity: next })
  expect(new Set([unused, next, await free(unused)]).size).toBe(3)
})

describe('an orphan', () => {
  test.each([true, false])(
    'is asked about: a collection, a deposit, a payout (by its reference: %s)',
    async (clientRef) => {
      const [collect, disburse, payout] = [randomUUID(), randomUUID(), randomUUID()]
      for (const identity of [collect, disburse, payout])
        await recordOrphan(identity, { clientRef, collects: identity === collect })
      const other = item(shop)
      expect(await collectMany(pool, [item(shop, { identity: collect }), other])).toMatchObject([
        { outcome: 'made', isOrphan: true },
        { outcome: 'made', isOrphan: false },
      ])
      expect(
        await depositMany(pool, [depositItem(shop), depositItem(shop, { identity: disburse })]),
      ).toMatchObject([
        { outcome: 'made', isOrphan: false },
        { outcome: 'made', isOrphan: true },
      ])
      const id = await openPayout(pool, shop, { identity: payout })
      expect((await beginPayouts(pool)).find(({ payoutId }) => payoutId === id)).toMatchObject({
        outcome: 'asked',
      })
      for (const identity of [collect, disburse, payout])
        expect(await requestOf(identity)).toEqual(askedAbout)
    },
  )

  test('of another operator: the outcome is differs, and nothing is recorded', async () => {
    const identities = [randomUUID(), randomUUID(), randomUUID()] as const
    for (const identity of identities) await recordOrphan(identity, { provider: 'OperatorC' })
    const [collect, disburse, payout] = identities
    expect(await collectMany(pool, [item(shop, { identity: collect })])).toMatchObject([
      { outcome: 'differs' },
    ])
    expect(await depositMany(pool, [depositItem(shop, { identity: disburse })])).toMatchObject([
      { outcome: 'differs' },
    ])
    expect(await createPayouts(pool, [payoutItem(shop, { identity: payout })])).toMatchObject([
      { outcome: 'differs' },
    ])
    for (const table of ['transaction', 'payout']) {
      const { rows } = await db.owner.query(`SELECT FROM ${table} WHERE correlation_id = ANY ($1)`, [
        identities,
      ])
      expect(rows).toEqual([])
    }
  })

  test.each([{ givesUp: false }, { givesUp: true }])(
    'that becomes known later is neither sent again nor given up: %o',
    async (options) => {
      const { requestId, correlationId } = await openCollection(pool, shop)
      await db.owner.query(
        `UPDATE operator_request SET state = 'unsent', fence_until = now() - interval '1 s' WHERE id = $1`,
        [requestId],
      )
      await recordOrphan(correlationId)
      expect(await claimSend(pool, { id: requestId, attempt: 1 }, options)).toBeNull()
      expect(await requestOf(correlationId)).toEqual(askedAbout)
    },
  )

  test('is only added to, and the act of a person about it is written once', async () => {
    await recordOrphan(randomUUID())
    await expect(pool.query('DELETE FROM operator_orphan')).rejects.toThrow(/permission denied/)
    await expect(db.owner.query('DELETE FROM operator_orphan')).rejects.toThrow(/not allowed on this table/)
    const half = pool.query('UPDATE operator_orphan SET resolved_at = now()')
    await expect(half).rejects.toMatchObject({ constraint: 'operator_orphan_resolved' })
  })
})
