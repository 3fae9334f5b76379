import pg from 'pg'
import { childOptions } from '../child.ts'
import { openOperator } from '../limit-operator.ts'
import { quantile } from '../load.ts'

// The limit of `bulk`: a bare loop. So many calls at once as the service makes for one batch; what they led
// to is noted by one UPDATE of 500 rows. No ledger, no intent before the call, no event: a crash loses money.
const tables = `
  CREATE TABLE limit_recipient (
    id bigserial PRIMARY KEY, phone text NOT NULL, amount bigint NOT NULL, correlation_id uuid NOT NULL,
    status recipient_status NOT NULL DEFAULT 'pending', operator_reference text)`

const { databaseUrl, operatorsUrl, callsAtOnce } = childOptions() as {
  databaseUrl: string
  operatorsUrl: string
  callsAtOnce: number
}
const pool = new pg.Pool({ connectionString: databaseUrl, max: 4 })
await pool.query(tables)
const send = await openOperator(operatorsUrl)

interface Recipient {
  id: string
  name: string
  amount: number
  phone: string
}

async function payAll(seconds: number): Promise<object> {
  const durations: number[] = []
  const begun = performance.now()
  const { rows } = await pool.query<Recipient>(
    `SELECT id, correlation_id AS name, amount::int, phone FROM limit_recipient WHERE status = 'pending'
     ORDER BY id LIMIT 10000`,
  )
  let paid: { id: string; reference: string }[] = []
  const note = (some: typeof paid) =>
    pool.query({
      name: 'note',
      text: `UPDATE limit_recipient r SET status = 'success', operator_reference = p.reference
        FROM unnest($1::bigint[], $2::text[]) AS p (id, reference) WHERE r.id = p.id`,
      values: [some.map(({ id }) => id), some.map(({ reference }) => reference)],
    })
  const left = () => performance.now() - begun < seconds * 1_000
  const queue = rows.values()
  const pay = async () => {
    for (const { id, name, amount, phone } of queue) {
      const at = performance.now()
      paid.push({ id, reference: await send(name, amount, phone) })
      durations.push(performance.now() - at)
      if (paid.length >= 500) await note(paid.splice(0))
      if (!left()) return
    }
  }
  await Promise.all(Array.from({ length: callsAtOnce }, pay))
  await note(paid)
  paid = []
  const value = durations.length / ((performance.now() - begun) / 1_000)
  return { value, operations: durations.length, p99Ms: quantile(durations, 0.99) }
}

process.on('message', ({ seconds }: { seconds: number }) => {
  void payAll(seconds).then((said) => process.send?.(said))
})
process.on('disconnect', () => process.exit())
process.send?.({})
