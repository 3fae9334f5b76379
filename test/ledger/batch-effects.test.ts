import { expect, test } from 'vitest'
import { useTestDatabase } from '../kit/database.ts'
import { fundedMerchant } from '../kit/money.ts'
import {
  addRecipients,
  beginRecipients,
  createBatch,
  openBatch,
  openDraft,
  payees,
  processBatch,
  recipientsOf,
  settleRecipients,
} from '../kit/money-bulk.ts'

// A request never repeats its work under the same Idempotency-Key, on any node and at any time.

const db = await useTestDatabase()
const { pool } = db.database

const twelve = <T>(act: () => Promise<T>) => Promise.all(Array.from({ length: 12 }, act))

test('one draft is made, also from recipients who failed', async () => {
  const merchant = await fundedMerchant(pool, 10_000n)
  const made = await twelve(() => createBatch(pool, merchant, payees(2), { effect: 'one' }))
  expect(new Set(made.map((each) => each?.batchId)).size).toBe(1)
  expect(made.filter((each) => each?.outcome === 'made')).toHaveLength(1)
  const id = await openBatch(pool, merchant, payees(1))
  const [begun] = await beginRecipients(pool)
  await settleRecipients(pool, [{ id: begun?.recipientId ?? 0n, to: 'failed' }])
  const retry = (effect: string) => createBatch(pool, merchant, [], { retried: id, effect })
  const retried = await twelve(() => retry('two'))
  expect(new Set(retried.map((each) => each?.batchId)).size).toBe(1)
  expect(retried.filter((each) => each?.outcome === 'made')).toHaveLength(1)
  expect(await retry('two')).toMatchObject({ outcome: 'repeated' })
  expect(await retry('three')).toMatchObject({ outcome: 'retried' })
})

test('recipients are added once, also to a batch that is no draft any more by then', async () => {
  const merchant = await fundedMerchant(pool, 10_000n)
  const id = await openDraft(pool, merchant, payees(1))
  const add = () => addRecipients(pool, merchant, id, payees(2), 'three')
  const outcomes = await twelve(add)
  expect(outcomes.filter((outcome) => outcome === 'added')).toHaveLength(1)
  expect(new Set(outcomes)).toEqual(new Set(['added', 'repeated']))
  expect(await recipientsOf(pool, id)).toHaveLength(3)
  expect(await processBatch(pool, merchant, id)).toBe('processing')
  expect(await add()).toBe('repeated')
  expect(await addRecipients(pool, merchant, id, payees(2), 'four')).toBe('conflict')
})
