import { expect, test } from 'vitest'
import { availabilityOf, freeInMsSql } from '../../src/resources/payment-links/availability.ts'
import { verifyLedger } from '../../src/ledger/verify.ts'
import { borrow } from '../kit/client.ts'
import { deactivate, makeMerchant } from '../kit/merchants.ts'
import { useTestDatabase } from '../kit/database.ts'
import { eventTypes, reverseMany, settleMany } from '../kit/money.ts'
import { countsOf, openLink, payBy } from '../kit/money-links.ts'

// The places of payment links. Services share nothing but the database: its sessions stand for them.

const db = await useTestDatabase()
const merchant = await makeMerchant(db.database.pool)

const linked = (terms = {}) => openLink(db.owner, merchant.merchantId, terms)
const pay = (link: number, shown?: number) => payBy(db.database.pool, link, shown)
const settle = (id: bigint, to: string) => settleMany(db.database.pool, [{ id, to }])
const counts = (link: number) => countsOf(db.owner, link)
async function problems() {
  await db.owner.query('SELECT make_missing_deliveries(1000000)')
  return verifyLedger(db.database.pool)
}

test('one of 20 payers at once of a link for one payment is asked', async () => {
  const link = await linked({ limit: 1 })
  const first = await borrow(db.owner)
  await first.query('BEGIN')
  await first.query('SELECT FROM payment_link WHERE id = $1 FOR UPDATE', [link])
  const trying = Promise.all(Array.from({ length: 20 }, () => pay(link)))
  // As many as there are connections have come to the link, and none knows of another.
  await db.untilWaiting(10)
  await first.query('COMMIT')
  first.release()
  const tried = await trying
  expect(tried.map(({ outcome }) => outcome).toSorted()).toEqual([...Array(19).fill('held'), 'made'])
  expect(tried.filter(({ availability }) => availability === 'exhausted')).toHaveLength(19)
  expect(await counts(link)).toEqual([0, 1, 'exhausted'])
})

test('one of ten links at once asks one telephone, and one more after that attempt is paid', async () => {
  const other = await makeMerchant(db.database.pool)
  const owners = [merchant, other]
  const links = await Promise.all(
    Array.from({ length: 10 }, (_, n) => openLink(db.owner, owners[n % 2]?.merchantId ?? 0)),
  )
  const ask = (link: number) => payBy(db.database.pool, link, 5_000, { phone: '+22370000002', asked: 1 })
  const first = await borrow(db.owner)
  await first.query('BEGIN')
  await first.query('SELECT FROM payment_link WHERE id = ANY ($1) FOR UPDATE', [links])
  const asking = Promise.all(links.map(ask))
  await db.untilWaiting(10)
  await first.query('COMMIT')
  first.release()
  const asked = await asking
  expect(asked.map(({ outcome }) => outcome).toSorted()).toEqual([...Array(9).fill('asked'), 'made'])
  await settle(asked.find(({ outcome }) => outcome === 'made')?.id ?? 0n, 'success')
  const [link = 0] = links
  const again = [await ask(link), await ask(link)]
  expect(again.map(({ outcome }) => outcome)).toEqual(['made', 'asked'])
  await settle(again[0]?.id ?? 0n, 'failed')
  expect((await ask(link)).outcome).toBe('asked')
})

test.each(['failed', 'cancelled', 'expired'])('an attempt that %s gives its place back', async (end) => {
  const link = await linked({ limit: 1 })
  await settle((await pay(link)).id, end)
  expect(await counts(link)).toEqual([0, 0, 'open'])
  await settle((await pay(link)).id, 'success')
  expect(await counts(link)).toEqual([1, 0, 'exhausted'])
  expect((await pay(link)).outcome).toBe('closed')
})

test('late money counts, also beyond the limit; an outcome that comes twice counts once', async () => {
  const link = await linked({ limit: 1 })
  const late = (await pay(link)).id
  await settle(late, 'expired')
  await settle((await pay(link)).id, 'success')
  for (let n = 0; n < 2; n += 1) await settle(late, 'success')
  expect(await counts(link)).toEqual([2, 0, 'exhausted'])
  expect(await problems()).toEqual([])
  const { rows } = await db.owner.query<{ data: object }>(
    `SELECT data FROM event WHERE type = 'payment_link_used' AND data->>'payment_link_id' = $1 ORDER BY id`,
    [String(link)],
  )
  expect(rows.map(({ data }) => data)).toEqual([
    expect.objectContaining({ usage_count: 1 }),
    {
      payment_link_id: link,
      url_slug: expect.any(String),
      transaction_id: Number(late),
      reference: expect.any(String),
      amount: 5_000,
      currency: 'XOF',
      usage_count: 2,
    },
  ])
})

test('money that was given back was a use all the same', async () => {
  const link = await linked({ limit: 1 })
  const { id } = await pay(link)
  await settle(id, 'success')
  expect(await reverseMany(db.database.pool, [id])).toMatchObject([{ moved: true }])
  expect(await counts(link)).toEqual([1, 0, 'exhausted'])
})

test('an attempt keeps its first amount; a payer who saw another amount is refused', async () => {
  const link = await linked()
  const { id } = await pay(link)
  await db.owner.query('UPDATE payment_link SET amount = 7000 WHERE id = $1', [link])
  expect(await pay(link, 5_000)).toMatchObject({ outcome: 'changed', availability: 'open', id: 0n })
  expect((await pay(link, 7_000)).outcome).toBe('made')
  await settle(id, 'success')
  const { rows } = await db.owner.query('SELECT settled_amount FROM transaction WHERE id = $1', [id])
  expect(rows).toEqual([{ settled_amount: 5_000n }])
  await expect(
    db.owner.query('UPDATE transaction SET payment_link_id = NULL WHERE id = $1', [id]),
  ).rejects.toThrow('transaction')
})

test('the payer of a link without an amount names it', async () => {
  const link = await linked({ amount: null })
  const [{ id }] = [await pay(link, 1_234)]
  await settle(id, 'success')
  const { rows } = await db.owner.query('SELECT amount FROM transaction WHERE id = $1', [id])
  expect(rows).toEqual([{ amount: 1_234n }])
})

test.each<[string, object, string]>([
  ['expired', { expiresAt: new Date(Date.now() - 1) }, ''],
  ['inactive', {}, 'UPDATE payment_link SET is_active = false WHERE id = $1'],
])('no payer pays by a link that is %s', async (why, terms, change) => {
  const link = await linked(terms)
  if (change) await db.owner.query(change, [link])
  expect(await pay(link)).toMatchObject({ outcome: 'closed', availability: why })
})

test('no payer pays a merchant that is not active, nor by a link that is not there', async () => {
  const gone = await makeMerchant(db.database.pool)
  const link = await openLink(db.owner, gone.merchantId)
  await deactivate(db.owner, gone.merchantId)
  expect((await pay(link)).outcome).toBe('nobody')
  expect((await pay(2_000_000_000)).outcome).toBe('nobody')
  expect(await eventTypes(db.database.pool, gone.merchantId)).toEqual([])
})

test('the code and the SQL statement agree about the availability of a link', async () => {
  const now = new Date()
  // One attempt is young enough to occupy a place; the count of open attempts does not matter.
  const link = await linked()
  await pay(link)
  for (const isActive of [true, false])
    for (const expiresAt of [null, new Date(now.getTime() - 5_000), new Date(now.getTime() + 60_000)])
      for (const [usageLimit, usageCount, openCount] of [
        [null, 9, 9],
        [2, 1, 0],
        [2, 1, 1],
        [3, 1, 2],
        [2, 2, 0],
        [2, 3, 0],
      ] as const) {
        const places = { isActive, expiresAt, usageLimit, usageCount, openCount }
        const { rows } = await db.owner.query<{ can: string; freeInMs: number | null }>(
          `SELECT link_availability(ROW(l.*)::payment_link) AS can, ${freeInMsSql} AS "freeInMs"
           FROM (SELECT (ROW($6::int, 1, '', NULL, NULL, 'abc', $1, $2, $3, $4, $5, NULL, now(),
             now())::payment_link).*) l`,
          [usageLimit, usageCount, openCount, isActive, expiresAt, link],
        )
        const { can, freeInMs = null } = rows[0] ?? {}
        expect({ ...places, can }).toEqual({ ...places, can: availabilityOf(places, freeInMs, now) })
      }
})

test('an attempt holds its place for ten minutes; it may be paid after that, beyond the limit', async () => {
  const link = await linked({ limit: 1 })
  const { id } = await pay(link)
  expect(await pay(link)).toMatchObject({ outcome: 'held', availability: 'exhausted' })
  const advance = `INSERT INTO sandbox_clock (offset_ms) VALUES ($1)
    ON CONFLICT (singleton) DO UPDATE SET offset_ms = excluded.offset_ms`
  await db.owner.query(advance, [9 * 60_000])
  expect((await pay(link)).outcome).toBe('held')
  await db.owner.query(advance, [10 * 60_000])
  const second = await pay(link)
  expect(second.outcome).toBe('made')
  expect(await counts(link)).toEqual([0, 2, 'exhausted'])
  await settle(id, 'success')
  await settle(second.id, 'success')
  expect(await counts(link)).toEqual([2, 0, 'exhausted'])
  expect((await pay(link)).outcome).toBe('closed')
  expect(await problems()).toEqual([])
  await db.owner.query('DELETE FROM sandbox_clock')
})

test('attempts that are settled at once in any order never deadlock', async () => {
  const links = await Promise.all(Array.from({ length: 6 }, () => linked()))
  for (let round = 0; round < 6; round += 1) {
    // Each batch pays by all links; half of them the other way round.
    const batches = await Promise.all(
      Array.from({ length: 6 }, async (_, n) => {
        const ids: bigint[] = []
        for (const link of n % 2 ? links : links.toReversed()) ids.push((await pay(link)).id)
        return ids
      }),
    )
    await Promise.all([
      ...batches.map((ids) =>
        settleMany(
          db.database.pool,
          ids.map((id) => ({ id, to: 'success' })),
        ),
      ),
      ...links.map((link) => pay(link)),
    ])
  }
  for (const link of links) expect(await counts(link)).toEqual([36, 6, 'open'])
  expect(await problems()).toEqual([])
  await db.owner.query('SELECT pg_stat_force_next_flush()')
  const { rows } = await db.owner.query(
    'SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()',
  )
  expect(rows).toEqual([{ deadlocks: 0 }])
})
