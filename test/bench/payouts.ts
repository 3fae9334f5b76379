import { randomUUID } from 'node:crypto'
import { createPayouts } from '../kit/money-out.ts'
import { compare, engine, loop } from './compare.ts'
import type { BenchFixture } from './fixture.ts'

const merchantsCount = 200
/** More than any entry pays out in a second; the rest is paid out in the next turn. */
const payoutsPerSecond = 1_500

/** Payouts that are due, sent by the engine, against one statement for 32 and one for each answer. */
export const payouts = compare(
  { merchants: merchantsCount, books: 'funded' },
  async ({ fixture, ...sides }) => {
    const { owner } = fixture
    const limit = await sides.start({ workload: 'payouts' })
    const halt = () => owner.query(`INSERT INTO payments_out_halt (reason) VALUES ('bench')`)
    await halt()
    let before = 0
    const theirs = loop('limit: take 32, ask, settle each', limit, async (seconds) => {
      await owner.query(
        `INSERT INTO limit_payout (merchant_id, phone, amount, status, reference, correlation_id, send_at)
       SELECT m.id, '+22370000001', 1000, 'pending', gen_random_uuid(), gen_random_uuid(), now()
       FROM generate_series(1, $1::int) AS n JOIN merchant m ON m.id = 1 + n % $2::int`,
        [seconds * payoutsPerSecond, merchantsCount],
      )
      await owner.query('ANALYZE limit_payout')
    })
    const ours = engine(
      'engine',
      sides.product,
      { ratioMin: 0.7 },
      {
        async prepare(seconds) {
          await makeDue(fixture, seconds * payoutsPerSecond)
          before = await completed(fixture)
        },
        async begin() {
          await owner.query(
            `UPDATE payments_out_halt SET lifted_at = now(), lifted_reason = 'bench' WHERE lifted_at IS NULL`,
          )
          await owner.query('SELECT enqueue_due_payouts()')
        },
        done: async () => (await completed(fixture)) - before,
        halt,
      },
    )
    return {
      sections: [
        {
          title: `payouts from the job on, ${merchantsCount} merchants`,
          unit: 'payouts/s',
          entries: [theirs, ours],
        },
      ],
      notes: [
        'limit: pg and undici: one statement takes 32 that are due, all are asked for, each is settled.',
        'engine: begun, sent through the driver and its guards, settled; 32 at a time.',
        'Both ask OperatorD of the same simulator; its processor time is not counted.',
      ],
    }
  },
)

async function completed({ owner }: BenchFixture): Promise<number> {
  const { rows } = await owner.query<{ n: string }>(
    `SELECT coalesce(sum(n), 0) AS n FROM payout_count WHERE status = 'completed'`,
  )
  return Number(rows[0]?.n)
}

/** Payouts that were scheduled and are due: what is halted begins nothing. */
async function makeDue({ owner }: BenchFixture, count: number): Promise<void> {
  const { rows: keys } = await owner.query<{ merchantId: number; apiKeyId: number; apiKeyVersion: number }>(
    `SELECT merchant_id AS "merchantId", id AS "apiKeyId", version AS "apiKeyVersion" FROM api_key
     WHERE merchant_id <= $1`,
    [merchantsCount],
  )
  const [scheduledAt, destination] = [new Date(), { provider: 'OperatorD', phone: '+22370000001' } as const]
  const due = { ...destination, amount: 1_000n, scheduledAt, beneficiaryId: null, beneficiaryName: null }
  for (let left = count; left > 0; left -= keys.length) {
    const items = keys.slice(0, left).map((key) => ({ ...due, ...key, reference: randomUUID() }))
    await createPayouts(owner, items)
  }
}
