import { expect, test } from 'vitest'
import { findIds } from '../../../src/database/find-rows.ts'
import { asMerchant } from '../../../src/database/merchant-pool.ts'
import { payoutTable } from '../../../src/resources/payouts/list.ts'
import { useTestDatabase } from '../../kit/database.ts'
import { makeMerchant } from '../../kit/merchants.ts'
import { randomFrom } from '../../kit/random.ts'
import { seed } from '../../kit/seeds.ts'

// The pages of payouts of a period, where the clock went back and forth: ids and times differ in order.

const db = await useTestDatabase()
const start = Date.UTC(2026, 0, 1)
const dayMs = 24 * 60 * 60 * 1_000
const [days, payoutCount] = [12, 400]
const random = randomFrom(seed)

/** Adds payouts of twelve days; some are of the first or the last moment of a day. */
async function fill(merchantId: number): Promise<void> {
  const times = Array.from({ length: payoutCount }, (_none, n) => {
    const usual = start + (n * days * dayMs) / payoutCount
    const at = n % 7 === 0 ? start + random() * days * dayMs : usual
    const midnight = Math.round(at / dayMs) * dayMs
    return new Date(n % 5 === 0 ? midnight - (n % 2) : at)
  })
  await db.owner.query(
    `INSERT INTO payout (merchant_id, payment_method, destination_phone, amount, status, reference, send_at,
       approval, maker, request_data, created_at)
     SELECT $1, 'OperatorA', '+22370000001', 1000, 'failed', 'p-' || n, now(), 'not_required', 'member:1',
       '{}', at FROM unnest($2::timestamptz[]) WITH ORDINALITY AS made (at, n) ORDER BY n`,
    [merchantId, times],
  )
}

test('a page of every period has the rows of the period, also where the clock went back', async () => {
  const { merchantId } = await makeMerchant(db.database.pool)
  const { merchantId: neighbour } = await makeMerchant(db.database.pool)
  for (const id of [neighbour, merchantId]) await fill(id)
  const { rows } = await db.owner.query<{ id: bigint; at: Date }>(
    'SELECT id, created_at AS at FROM payout WHERE merchant_id = $1 ORDER BY id DESC',
    [merchantId],
  )
  expect(rows).toHaveLength(payoutCount)
  const moment = () => {
    const at = start + (random() * (days + 2) - 1) * dayMs
    return new Date(random() < 0.3 ? Math.round(at / dayMs) * dayMs : at)
  }
  for (let round = 0; round < 80; round += 1) {
    const [from, to] = [moment(), moment()].toSorted((a, b) => Number(a) - Number(b))
    const createdAt = { ...(round % 4 !== 0 && { gte: from }), ...(round % 5 !== 0 && { lte: to }) }
    const { gte = new Date(0), lte = new Date(start * 2) } = createdAt
    const isOldestFirst = round % 3 === 0
    const matching = rows.filter(({ at }) => at >= gte && at <= lte).map(({ id }) => id)
    const wanted = isOldestFirst ? matching.toReversed() : matching
    const page = {
      table: payoutTable,
      where: { merchantId, createdAt },
      search: null,
      order: isOldestFirst ? 'created_at_asc' : 'created_at_desc',
      after: null,
      before: null,
      isBackward: false,
      take: 20,
      skip: 3,
    } as const
    const found = await asMerchant(merchantId, () => findIds(db.database.merchantPool, page))
    expect(found, JSON.stringify(createdAt)).toEqual(wanted.slice(3, 23))
  }
})

test('a session reads the ids of its own merchant only', async () => {
  const { merchantId } = await makeMerchant(db.database.pool)
  const { merchantId: other } = await makeMerchant(db.database.pool)
  await fill(merchantId)
  const period = { merchant: merchantId, since: null, until: new Date(start + dayMs) }
  const read = () => payoutTable.idsOfPeriod?.(db.database.merchantPool, period)
  expect(await asMerchant(merchantId, read)).toEqual([{ oldest: null, newest: expect.any(BigInt) }])
  expect(await asMerchant(other, read)).toEqual([])
})
