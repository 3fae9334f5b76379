import pg from 'pg'
import { childOptions } from '../child.ts'
import { openOperator } from '../limit-operator.ts'
import { quantile } from '../load.ts'

// The limit of `payouts`: one statement takes 32 that are due and sets their money aside, the operator is
// asked for all of them at once, and each answer is settled by a statement of its own.
const tables = `
  CREATE TABLE limit_payout_balance (
    merchant_id int PRIMARY KEY REFERENCES merchant (id), available bigint NOT NULL CHECK (available >= 0),
    reserved bigint NOT NULL CHECK (reserved >= 0));
  CREATE TABLE limit_payout (
    id bigserial PRIMARY KEY, merchant_id int NOT NULL REFERENCES merchant (id), phone text NOT NULL,
    amount bigint NOT NULL, status payout_status NOT NULL, reference text NOT NULL,
    correlation_id uuid NOT NULL, operator_reference text, send_at timestamptz(3) NOT NULL,
    UNIQUE (reference, merchant_id));
  CREATE INDEX ON limit_payout (send_at, id) WHERE status = 'pending';
  CREATE TABLE limit_payout_entry (
    id bigserial PRIMARY KEY, merchant_id int NOT NULL, payout_id bigint NOT NULL, step ledger_step NOT NULL,
    amount bigint NOT NULL, created_at timestamptz(3) NOT NULL, UNIQUE (payout_id, step));
  CREATE TABLE limit_payout_outbox (
    id bigserial PRIMARY KEY, merchant_id int NOT NULL, payout_id bigint NOT NULL,
    status payout_status NOT NULL, created_at timestamptz(3) NOT NULL);
  INSERT INTO limit_payout_balance SELECT id, 900000000000, 0 FROM merchant`

const take = `
  WITH due AS (
    SELECT id FROM limit_payout WHERE status = 'pending' AND send_at <= now()
    ORDER BY send_at, id LIMIT 32 FOR UPDATE SKIP LOCKED
  ), begun AS (
    UPDATE limit_payout p SET status = 'processing' FROM due WHERE p.id = due.id RETURNING p.*
  ), held AS (
    UPDATE limit_payout_balance b SET available = b.available - s.sum, reserved = b.reserved + s.sum
    FROM (SELECT merchant_id, sum(amount)::bigint AS sum FROM begun GROUP BY merchant_id) s
    WHERE b.merchant_id = s.merchant_id
  ), moved AS (
    INSERT INTO limit_payout_entry (merchant_id, payout_id, step, amount, created_at)
    SELECT merchant_id, id, 'reserve', amount, now() FROM begun
  ), told AS (
    INSERT INTO limit_payout_outbox (merchant_id, payout_id, status, created_at)
    SELECT merchant_id, id, status, now() FROM begun
  )
  SELECT id, correlation_id AS name, amount::int, phone FROM begun`

const settle = `
  WITH ended AS (
    UPDATE limit_payout SET status = 'completed', operator_reference = $2
    WHERE id = $1 AND status = 'processing' RETURNING id, merchant_id, amount, status
  ), paid AS (
    UPDATE limit_payout_balance b SET reserved = b.reserved - e.amount FROM ended e
    WHERE b.merchant_id = e.merchant_id
  ), moved AS (
    INSERT INTO limit_payout_entry (merchant_id, payout_id, step, amount, created_at)
    SELECT merchant_id, id, 'post', amount, now() FROM ended
  )
  INSERT INTO limit_payout_outbox (merchant_id, payout_id, status, created_at)
  SELECT merchant_id, id, status, now() FROM ended`

const { databaseUrl, operatorsUrl } = childOptions() as { databaseUrl: string; operatorsUrl: string }
const pool = new pg.Pool({ connectionString: databaseUrl, max: 16 })
await pool.query(tables)
const send = await openOperator(operatorsUrl)

interface Taken {
  id: string
  name: string
  amount: number
  phone: string
}

async function payOut(seconds: number): Promise<object> {
  const durations: number[] = []
  const begun = performance.now()
  const left = () => performance.now() - begun < seconds * 1_000
  for (let more = true; more && left(); ) {
    const at = performance.now()
    const { rows } = await pool.query<Taken>({ name: 'take', text: take })
    await Promise.all(
      rows.map(async ({ id, name, amount, phone }) => {
        const paid = await send(name, amount, phone)
        await pool.query({ name: 'settle', text: settle, values: [id, paid] })
        durations.push(performance.now() - at)
      }),
    )
    more = rows.length > 0
  }
  const value = durations.length / ((performance.now() - begun) / 1_000)
  return { value, operations: durations.length, p99Ms: quantile(durations, 0.99) }
}

process.on('message', ({ seconds }: { seconds: number }) => {
  void payOut(seconds).then((said) => process.send?.(said))
})
process.on('disconnect', () => process.exit())
process.send?.({})
