import type pg from 'pg'
import { afterEach, expect, onTestFinished, test } from 'vitest'
import { haltPaymentsOut, resumePaymentsOut } from '../../src/ledger/payments-out.ts'
import { claimSend } from '../../src/requests/store.ts'
import type { Provider } from '../../src/shared/providers.ts'
import { borrow } from '../kit/client.ts'
import { deactivate, type SignedInMerchant } from '../kit/merchants.ts'
import { createTestDatabase, type TestDatabase, useTestDatabase } from '../kit/database.ts'
import { fundedMerchant, problemsOf } from '../kit/money.ts'
import {
  allProviders,
  beginRecipients,
  cancelAllBatches,
  cancelBatch,
  openBatch,
  payees,
  recipientsOf,
  settleRecipients,
} from '../kit/money-bulk.ts'

const db = await useTestDatabase()
const { pool } = db.database
/** A second process. */
const other = db.secondProcess()
// The recipients of one test must not be due in the next.
afterEach(() => cancelAllBatches(pool))

const node = (n: number) => (n % 2 ? pool : other.pool)
const rich = () => fundedMerchant(pool, 20_000_000n)
const mixed = (each: number) => allProviders.flatMap((provider) => payees(each, { provider }))
/** How many of each. */
function per<T>(all: readonly T[], key: (one: T) => string | number): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const one of all) counts[key(one)] = (counts[key(one)] ?? 0) + 1
  return counts
}

test('a recipient begins once, with its request on record, however many processes look', async () => {
  const merchant = await rich()
  const ids = await Promise.all([1, 2, 3, 4, 5].map(() => openBatch(pool, merchant, mixed(10))))
  const rounds = await Promise.all(
    Array.from({ length: 40 }, (_, n) => beginRecipients(node(n), { room: 3 })),
  )
  const begun = rounds.flat()
  for (let more = await beginRecipients(pool); more.length > 0; more = await beginRecipients(pool))
    begun.push(...more)
  expect(begun).toHaveLength(200)
  expect(new Set(begun.map(({ recipientId }) => recipientId)).size).toBe(200)
  expect(new Set(begun.map(({ correlationId }) => correlationId)).size).toBe(200)
  const { rows } = await db.owner.query(
    `SELECT count(*)::int AS asked FROM operator_request q JOIN batch_recipient r ON r.id = q.recipient_id
     WHERE q.phone = r.account AND q.amount = r.amount AND q.provider = r.payment_method
       AND q.kind = 'disburse' AND q.state = 'sending' AND q.next_check_at IS NOT NULL`,
  )
  expect(rows).toEqual([{ asked: 200 }])
  expect(await problemsOf(pool, merchant.merchantId)).toEqual([])
  for (const id of ids) await settleAll(id)
})

async function settleAll(id: number): Promise<void> {
  const all = await recipientsOf(pool, id)
  await settleRecipients(
    pool,
    all.map((each) => ({ id: each.id, to: 'success' })),
  )
}

test('at most 8 recipients of a batch are under way; its operators share them', async () => {
  const merchant = await rich()
  const id = await openBatch(pool, merchant, mixed(20))
  const first = await beginRecipients(pool)
  expect(per(first, ({ operator }) => operator)).toEqual(Object.fromEntries(allProviders.map((o) => [o, 2])))
  expect(await beginRecipients(pool, { busy: first })).toEqual([])
  // OperatorA is slow: its two are busy still.
  const slow = first.filter(({ operator }) => operator === 'OperatorA')
  const next = await beginRecipients(pool, { busy: slow })
  expect(per(next, ({ operator }) => operator)).toEqual({ OperatorB: 2, OperatorC: 2, OperatorD: 2 })
  // One that cannot be asked now leaves its share to the others.
  const open: Provider[] = ['OperatorA', 'OperatorC']
  expect(per(await beginRecipients(pool, { open }), ({ operator }) => operator)).toEqual({
    OperatorA: 4,
    OperatorC: 4,
  })
  expect(await beginRecipients(pool, { open: ['OperatorB'], room: 3 })).toHaveLength(3)
  const busy = Array.from({ length: 5 }, () => ({ batchId: id, operator: 'OperatorB' as const }))
  expect(await beginRecipients(pool, { open: ['OperatorB'], busy })).toHaveLength(3)
  // Calls to one that cannot be asked any more count as well.
  expect(await beginRecipients(pool, { open: ['OperatorD'], busy })).toHaveLength(3)
})

test('calls of other processes count, first and repeated, for as long as a call lasts', async () => {
  await db.owner.query('UPDATE operator_request SET fence_until = now()')
  const id = await openBatch(pool, await rich(), payees(40))
  const callMs = 18_000
  const look = (more: object = {}) => beginRecipients(pool, { callMs, ...more })
  const first = await look({ room: 5 })
  expect(first).toHaveLength(5)
  expect(await look()).toHaveLength(3)
  expect(await look()).toEqual([])
  const ids = first.map(({ requestId }) => requestId)
  // The process that sent the calls knows that they are answered.
  expect(await look({ own: ids.slice(0, 2) })).toHaveLength(2)
  const change = (what: string) =>
    db.owner.query(`UPDATE operator_request SET ${what} WHERE id = ANY ($1)`, [ids])
  await change(`state = 'unsent', fence_until = now()`)
  expect(await look({ room: 8 })).toHaveLength(3)
  const again = () => claimSend(pool, { id: BigInt(ids[0] ?? 0), attempt: 1 })
  expect(await again()).toBeNull()
  await db.owner.query(
    `UPDATE operator_request q SET fence_until = now() + interval '12 s' FROM batch_recipient r
     WHERE r.id = q.recipient_id AND r.batch_id = $1 AND q.state = 'sending'`,
    [id],
  )
  expect(await again()).toBe(2)
  expect(await look()).toHaveLength(7)
})

test('each merchant has its turn: a batch of 10,000 delays no other merchant', async () => {
  const [big, small, single] = [await rich(), await rich(), await rich()]
  await openBatch(pool, big, payees(10_000))
  await openBatch(pool, big, payees(20))
  const begin = async (room: number) =>
    per(await beginRecipients(pool, { room }), ({ merchantId }) => merchantId)
  expect(await begin(8)).toEqual({ [big.merchantId]: 8 })
  const later = await openBatch(pool, small, payees(20))
  await openBatch(pool, single, payees(2))
  // A batch that comes later has the next turns, and then all share.
  expect(await begin(2)).toEqual({ [small.merchantId]: 1, [single.merchantId]: 1 })
  expect(await begin(6)).toEqual({ [big.merchantId]: 3, [small.merchantId]: 2, [single.merchantId]: 1 })
  expect(await begin(8)).toEqual({ [big.merchantId]: 4, [small.merchantId]: 4 })
  const left = (await recipientsOf(pool, later)).filter(({ status }) => status === 'pending')
  expect(left).toHaveLength(13)
})

test('each batch of a merchant has its turn', async () => {
  const merchant = await rich()
  const ids = [await openBatch(pool, merchant, payees(50)), await openBatch(pool, merchant, payees(50))]
  const late = await openBatch(pool, merchant, payees(50))
  const begun = await beginRecipients(pool, { room: 6 })
  expect(per(begun, ({ batchId }) => batchId)).toEqual({ [ids[0] ?? 0]: 2, [ids[1] ?? 0]: 2, [late]: 2 })
})

test('recipients begin in their order', async () => {
  const id = await openBatch(pool, await rich(), payees(20))
  const begun = [...(await beginRecipients(pool)), ...(await beginRecipients(pool))]
  const inOrder = (await recipientsOf(pool, id)).slice(0, 16)
  expect(begun.map(({ recipientId }) => recipientId)).toEqual(inOrder.map((each) => each.id))
})

async function owe({ merchantId }: SignedInMerchant, amount: number): Promise<void> {
  await db.owner.query('UPDATE merchant_balance SET receivable = $2, available = 0 WHERE merchant_id = $1', [
    merchantId,
    amount,
  ])
}

test('no recipient begins of a merchant that is gone or owes, of a cancelled batch, in a halt', async () => {
  const [gone, owes, stops, goes] = [await rich(), await rich(), await rich(), await rich()]
  const batches = await Promise.all([gone, owes, stops, goes].map((each) => openBatch(pool, each, payees(1))))
  await deactivate(pool, gone.merchantId)
  await owe(owes, 1)
  await cancelBatch(pool, stops, batches[2] ?? 0)
  await haltPaymentsOut(pool, 'drill')
  expect(await beginRecipients(pool)).toEqual([])
  await resumePaymentsOut(pool, 'over')
  expect(await beginRecipients(pool)).toMatchObject([{ batchId: batches[3] }])
  await owe(owes, 0)
  expect(await beginRecipients(pool)).toMatchObject([{ batchId: batches[1] }])
})

test('no recipient begins that is cancelled, halted or in debt by the time of its turn', async () => {
  const merchant = await rich()
  const id = await openBatch(pool, merchant, payees(3))
  const holding = await borrow(db.owner)
  const whileItWaits = async (act: () => Promise<unknown>) => {
    await holding.query('BEGIN')
    await holding.query('SELECT FROM batch WHERE id = $1 FOR UPDATE', [id])
    const waiting = beginRecipients(other.pool)
    await db.untilWaiting()
    await act()
    await holding.query('COMMIT')
    return waiting
  }
  expect(await whileItWaits(() => haltPaymentsOut(db.owner, 'drill'))).toEqual([])
  await resumePaymentsOut(pool, 'over')
  expect(await whileItWaits(() => owe(merchant, 1))).toEqual([])
  await owe(merchant, 0)
  expect(await whileItWaits(() => cancelBatch(holding, merchant, id))).toEqual([])
  holding.release()
  expect((await recipientsOf(pool, id)).map(({ status }) => status)).toEqual(Array(3).fill('cancelled'))
})

const others = 200

test(`reads no more beside 10,000 that wait and ${others} batches, of tables never analysed`, async () => {
  const fresh = await createTestDatabase()
  onTestFinished(() => fresh.drop())
  const client = await borrow(fresh.database.pool)
  const merchant = await fundedMerchant(fresh.owner, 200_000_000n)
  const turn = () =>
    readsOf(client, async () => {
      const id = await openBatch(client, merchant, mixed(3))
      const begun = await beginRecipients(client)
      expect(begun.length).toBeGreaterThan(7)
      const items = begun.map(({ recipientId }, n) => ({ id: recipientId, to: n ? 'success' : 'failed' }))
      expect((await settleRecipients(client, items)).every(({ moved }) => moved)).toBe(true)
      await cancelBatch(client, merchant, id)
    })
  // Plans are made here, and kept.
  for (let n = 0; n < 7; n += 1) await turn()
  const before = await turn()
  await fill(fresh, merchant)
  const after = await turn()
  expect(before.get('batch_recipient')).toBeGreaterThan(5)
  // It looks at each batch under way, and at as many of its recipients as could go; at no others.
  const more = new Map([...after].map(([name, read]) => [name, read - (before.get(name) ?? 0)]))
  expect(more.get('batch_recipient')).toBeLessThan(20 * others)
  expect(more.get('batch')).toBeLessThan(20 * others)
  more.delete('batch_recipient')
  more.delete('batch')
  expect([...more].filter(([, read]) => read > 2 * others)).toEqual([])
})

/** As many batches under way as sessions of long ago may have left. */
async function fill({ owner }: TestDatabase, merchant: SignedInMerchant): Promise<void> {
  await openBatch(owner, merchant, payees(10_000))
  for (let n = 0; n < others; n += 1) await openBatch(owner, merchant, mixed(10))
}

/** How many rows of each table this reads. */
async function readsOf(client: pg.PoolClient, work: () => Promise<void>): Promise<Map<string, number>> {
  const readSoFar = async () => {
    const { rows } = await client.query<{ name: string; read: bigint }>(
      `SELECT relname AS name, coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) AS read
       FROM pg_stat_xact_user_tables WHERE schemaname = 'public'`,
    )
    return new Map(rows.map(({ name, read }) => [name, Number(read)]))
  }
  await client.query('BEGIN')
  const before = await readSoFar()
  await work()
  const after = await readSoFar()
  await client.query('ROLLBACK')
  return new Map([...after].map(([name, read]) => [name, read - (before.get(name) ?? 0)]))
}
