import { expect, test, vi } from 'vitest'
import { eventually } from '../kit/eventually.ts'
import { customer, openFixture } from '../kit/fixture.ts'

// A new database has no statistics: a statement that could read a whole table does so, and keeps that plan.
vi.mock(import('../../src/requests/schedule.ts'), async (original) =>
  (await import('../kit/quick-polls.ts')).quickPolls(await original()),
)
const fixture = await openFixture({ RATE_LIMIT_WRITES: '1000000' })

const lives = 120

test('lives of payments on a new database read no request by a scan of the table', async () => {
  const { owner } = fixture.database
  await owner.query('ALTER TABLE operator_request SET (autovacuum_enabled = false)')
  const shop = await fixture.merchant()
  const begun = await scans()
  for (let left = lives; left > 0; left -= 20) {
    const paid = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        fixture.paid(shop, {
          payment_method: n % 2 ? 'OperatorA' : 'OperatorC',
          customer_phone: customer('00'),
        }),
      ),
    )
    expect(paid).toHaveLength(20)
  }
  await eventually(async () => {
    const { rows } = await owner.query<{ count: bigint }>(
      `SELECT count(*) FROM transaction WHERE status = 'success'`,
    )
    expect(Number(rows[0]?.count)).toBe(lives)
  }, 30_000)
  // A session hands in its counts when it ends, at the latest.
  await fixture.app.close()
  await eventually(async () => expect((await scans()).rows - begun.rows).toBe(lives))
  expect((await scans()).scans - begun.scans).toBe(0)

  async function scans(): Promise<{ scans: number; rows: number }> {
    const { rows } = await owner.query<{ scans: number; rows: number }>(
      `SELECT seq_scan::int AS scans, n_tup_ins::int AS rows FROM pg_stat_user_tables
       WHERE relname = 'operator_request'`,
    )
    return rows[0] ?? { scans: -1, rows: -1 }
  }
}, 120_000)
