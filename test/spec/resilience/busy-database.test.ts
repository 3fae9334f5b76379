import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import { borrow } from '../../kit/client.ts'
import { customer, openFixture } from '../../kit/fixture.ts'
import { usualWaits } from '../../kit/patience.ts'
import { useBounds } from '../../kit/use-bounds.ts'
import { waits } from '../../../src/shared/waits.ts'

// The pools take their bounds while they are opened.
const { connectMs, lockMs } = usualWaits
useBounds(waits, { connectMs, lockMs })

const fixture = await openFixture()
const { database } = fixture.app.services
const shop = await fixture.merchant()
const reference = String((await fixture.paid(shop))['reference'])
const pay = () =>
  fixture.rest('POST', '/pay', {
    token: shop.token,
    body: { amount: 5_000, payment_method: 'OperatorA', customer_phone: customer('11') },
  })
const busy = { status: 503, headers: expect.toSatisfy((given: Headers) => given.get('retry-after') === '1') }

/** Takes all sessions of a pool until the end of the test. */
function takeAll(pool: pg.Pool): Promise<pg.PoolClient[]> {
  return Promise.all(Array.from({ length: pool.options.max }, () => borrow(pool)))
}

describe('a busy database is 503, not a fault', () => {
  test('no free session of all merchants', async () => {
    await takeAll(database.pool)
    expect(await fixture.check(reference)).toMatchObject(busy)
  })

  test("no free session of a merchant's own", async () => {
    await takeAll(database.merchantPool)
    expect(await fixture.rest('GET', '/transactions/1', { token: shop.token })).toMatchObject(busy)
  })

  test('a lock held too long', async () => {
    const before = await fixture.rowCounts()
    const owner = await borrow(fixture.database.owner)
    await owner.query('BEGIN; LOCK TABLE transaction IN SHARE MODE')
    expect(await pay()).toMatchObject(busy)
    await owner.query('COMMIT')
    expect(await fixture.rowCounts()).toEqual(before)
    expect(await pay()).toMatchObject({ status: 202 })
  })
})
