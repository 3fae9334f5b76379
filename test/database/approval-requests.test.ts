import { expect, test } from 'vitest'
import { migrate } from '../../src/database/migrate.ts'
import { useTestDatabase } from '../kit/database.ts'
import { makeMember } from '../kit/members.ts'
import { openTestAccess } from '../kit/merchants.ts'
import { fundedMerchant } from '../kit/money.ts'
import { openDraft, payees, processBatch } from '../kit/money-bulk.ts'

// The batches that had an approval before their rows said who requested it.
const db = await useTestDatabase()
const { pool } = db.database

interface Requested {
  by: string | null
  member: number | null
  /** Days between the request and the expiry of the approval. */
  days: number | null
}

async function requestsOf(ids: readonly number[]): Promise<Requested[]> {
  const { rows } = await db.owner.query<Requested>(
    `SELECT approval_requested_by AS by, approval_requester_id AS member,
       extract(epoch FROM approval_expires_at - approval_requested_at)::int / 86400 AS days
     FROM batch JOIN unnest($1::int[]) WITH ORDINALITY AS i (id, ordinal) USING (id) ORDER BY ordinal`,
    [ids],
  )
  return rows
}

/** Makes the database as it was before migration 0011, and starts as the next release does. */
async function startAgain(): Promise<string[]> {
  await db.owner.query(
    `ALTER TABLE batch DROP COLUMN approval_requested_by CASCADE,
       DROP COLUMN approval_requester_id CASCADE, DROP COLUMN approval_requested_at CASCADE;
     DELETE FROM _functions;
     DELETE FROM _prisma_migrations WHERE migration_name = '0011_approval_requests'`,
  )
  return (await migrate(db.url)).applied
}

test('get the actor that the audit log names, else their maker, and the time of that request', async () => {
  const access = await openTestAccess(pool)
  const [shop, other] = [await fundedMerchant(pool, 100_000n), await fundedMerchant(pool, 0n)]
  const { merchantId } = shop
  const awa = await makeMember(access, merchantId, 'owner')
  const moussa = await makeMember(access, merchantId, 'finance')
  const stranger = await makeMember(access, other.merchantId, 'owner')
  const open = () => openDraft(pool, shop, payees(1))
  const settle = (on: boolean) =>
    db.owner.query('UPDATE merchant SET payouts_require_approval = $2 WHERE id = $1', [merchantId, on])
  const hold = (holder: number | null) =>
    db.owner.query('UPDATE api_key SET issued_to_id = $2 WHERE merchant_id = $1', [merchantId, holder])
  /** Writes the entry of a processed batch. */
  const record = (id: number, actor: string) =>
    db.owner.query(
      `INSERT INTO audit_entry (merchant_id, actor, operation, target, channel)
       VALUES ($1, 'member:1', 'createBatch', $2, 'rest'), ($1, $3, 'processBatch', $2, 'rest')`,
      [merchantId, `batch:${id}`, actor],
    )

  const [draft, plain] = [await open(), await open()]
  expect(await processBatch(pool, shop, plain)).toBe('processing')
  await settle(true)
  const waits = async () => {
    const id = await open()
    expect(await processBatch(pool, shop, id)).toBe('pending_approval')
    return id
  }
  const unknown = await waits()
  await hold(awa.memberId)
  const [byMember, byKey, foreign, unrecorded] = [await waits(), await waits(), await waits(), await waits()]
  await record(byMember, `member:${moussa.memberId}`)
  await record(byKey, `api_key:${shop.apiKeyId}`)
  await record(foreign, `member:${stranger.memberId}`)
  await hold(moussa.memberId)
  const mixed = await open()
  await hold(awa.memberId)
  expect(await processBatch(pool, shop, mixed)).toBe('pending_approval')

  expect(await startAgain()).toEqual(['0011_approval_requests'])
  const key = `api_key:${shop.apiKeyId}`
  const none = { by: null, member: null, days: null }
  expect(await requestsOf([draft, plain])).toEqual([none, none])
  expect(await requestsOf([byMember, byKey, foreign, unrecorded, unknown, mixed])).toEqual([
    { by: `member:${moussa.memberId}`, member: moussa.memberId, days: 7 },
    { by: key, member: awa.memberId, days: 7 },
    { by: `member:${stranger.memberId}`, member: null, days: 7 },
    { by: key, member: awa.memberId, days: 7 },
    // No member, or more than one, may have had the secret of the key at that time.
    { by: key, member: null, days: 7 },
    { by: key, member: null, days: 7 },
  ])
})
