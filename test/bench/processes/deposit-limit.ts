import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import pg from 'pg'
import { childOptions } from '../child.ts'
import { openOperator } from '../limit-operator.ts'

// The limit of `deposit`: node:http, a pool, and what cannot be left out: a commit that sets the money aside,
// the operator's answer, a commit that settles. It knows no tokens, and nothing of what may go wrong.
const tables = `
  CREATE TABLE limit_balance (
    merchant_id int PRIMARY KEY REFERENCES merchant (id), available bigint NOT NULL CHECK (available >= 0),
    reserved bigint NOT NULL CHECK (reserved >= 0));
  CREATE TABLE limit_deposit (
    id bigserial PRIMARY KEY, merchant_id int NOT NULL REFERENCES merchant (id),
    payment_method provider NOT NULL, customer_phone text NOT NULL,
    amount bigint NOT NULL CHECK (amount >= 1000), status transaction_status NOT NULL,
    reference text NOT NULL, correlation_id uuid NOT NULL, request_data jsonb NOT NULL,
    operator_reference text, created_at timestamptz(3) NOT NULL,
    UNIQUE (reference, merchant_id), UNIQUE (merchant_id, id));
  CREATE TABLE limit_entry (
    id bigserial PRIMARY KEY, merchant_id int NOT NULL, deposit_id bigint NOT NULL, step ledger_step NOT NULL,
    amount bigint NOT NULL, created_at timestamptz(3) NOT NULL, UNIQUE (deposit_id, step));
  CREATE TABLE limit_outbox (
    id bigserial PRIMARY KEY, merchant_id int NOT NULL, deposit_id bigint NOT NULL, data jsonb NOT NULL,
    created_at timestamptz(3) NOT NULL);
  INSERT INTO limit_balance SELECT id, 900000000000, 0 FROM merchant`

const reserve = `
  WITH covered AS (
    UPDATE limit_balance SET available = available - $4, reserved = reserved + $4
    WHERE merchant_id = $1 AND available >= $4 RETURNING merchant_id
  ), made AS (
    INSERT INTO limit_deposit (merchant_id, payment_method, customer_phone, amount, status, reference,
      correlation_id, request_data, created_at)
    SELECT merchant_id, $2, $3, $4, 'processing', $5, $6, $7, now() FROM covered
    RETURNING id, created_at
  ), moved AS (
    INSERT INTO limit_entry (merchant_id, deposit_id, step, amount, created_at)
    SELECT $1, id, 'reserve', $4, created_at FROM made
  ), told AS (
    INSERT INTO limit_outbox (merchant_id, deposit_id, data, created_at)
    SELECT $1, id, $7, created_at FROM made
  )
  SELECT id, created_at FROM made`

const settle = `
  WITH ended AS (
    UPDATE limit_deposit SET status = 'success', operator_reference = $2
    WHERE id = $1 AND status = 'processing' RETURNING id, merchant_id, amount, request_data
  ), paid AS (
    UPDATE limit_balance b SET reserved = b.reserved - e.amount FROM ended e
    WHERE b.merchant_id = e.merchant_id
  ), moved AS (
    INSERT INTO limit_entry (merchant_id, deposit_id, step, amount, created_at)
    SELECT merchant_id, id, 'post', amount, now() FROM ended
  )
  INSERT INTO limit_outbox (merchant_id, deposit_id, data, created_at)
  SELECT merchant_id, id, request_data, now() FROM ended`

const { databaseUrl, operatorsUrl } = childOptions() as { databaseUrl: string; operatorsUrl: string }
const pool = new pg.Pool({ connectionString: databaseUrl, max: 16 })
await pool.query(tables)
const send = await openOperator(operatorsUrl)

async function readJson(message: IncomingMessage): Promise<Record<string, unknown>> {
  const parts: Buffer[] = []
  for await (const part of message as AsyncIterable<Buffer>) parts.push(part)
  return JSON.parse(Buffer.concat(parts).toString()) as Record<string, unknown>
}

async function answer(message: IncomingMessage): Promise<[status: number, body: object]> {
  const body = await readJson(message)
  const { amount, customer_phone: digits, payment_method: method, reference } = body
  if (!Number.isInteger(amount) || typeof reference !== 'string' || !/^\d{8}$/.test(String(digits)))
    return [400, { success: false }]
  const phone = `+223${String(digits)}`
  const correlationId = randomUUID()
  const merchant = Number(message.headers['x-merchant'])
  const values = [merchant, method, phone, amount, reference, correlationId, JSON.stringify(body)]
  const { rows } = await pool.query<{ id: string; created_at: Date }>({
    name: 'reserve',
    text: reserve,
    values,
  })
  const [made] = rows
  if (!made) return [400, { success: false }]
  const paid = await send(correlationId, Number(amount), phone)
  await pool.query({ name: 'settle', text: settle, values: [made.id, paid] })
  const data = { transaction_id: Number(made.id), reference, amount, status: 'success' }
  return [200, { success: true, data: { ...data, initiated_at: made.created_at } }]
}

const server = createServer((message, response) => {
  void answer(message)
    .catch((error: unknown) => [500, { error: String(error) }] as const)
    .then(([status, body]) => {
      response.writeHead(status, { 'Content-Type': 'application/json' })
      response.end(JSON.stringify(body))
    })
})
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
process.on('disconnect', () => process.exit())
