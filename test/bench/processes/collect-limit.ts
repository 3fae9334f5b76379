import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import pg from 'pg'
import { childOptions } from '../child.ts'

// The limit of `collect`: node:http, a pool, one named statement per request; it knows no tokens. Its tables
// have what the product's have to have: the unique reference, the foreign key, the bound, the list's index.
const tables = `
  CREATE TABLE limit_payment (
    id bigserial PRIMARY KEY, merchant_id int NOT NULL REFERENCES merchant (id),
    transaction_type transaction_type NOT NULL, payment_method provider NOT NULL,
    customer_phone text NOT NULL,
    amount bigint NOT NULL CHECK (amount >= 100), status transaction_status NOT NULL, reference text NOT NULL,
    request_data jsonb NOT NULL, expires_at timestamptz(3), created_at timestamptz(3) NOT NULL,
    UNIQUE (reference, merchant_id), UNIQUE (merchant_id, id));
  CREATE TABLE limit_outbox (
    id bigserial PRIMARY KEY, merchant_id int NOT NULL, payment_id bigint NOT NULL, data jsonb NOT NULL,
    created_at timestamptz(3) NOT NULL)`

const collect = `
  WITH made AS (
    INSERT INTO limit_payment (merchant_id, transaction_type, payment_method, customer_phone, amount, status,
      reference, request_data, expires_at, created_at)
    VALUES ($1, 'pay', $2, $3, $4, 'pending', $5, $6, now() + interval '24 hours', now())
    ON CONFLICT (reference, merchant_id) DO NOTHING
    RETURNING id, created_at
  ), told AS (
    INSERT INTO limit_outbox (merchant_id, payment_id, data, created_at)
    SELECT $1, id, $6, created_at FROM made
  )
  SELECT id, created_at FROM made`

const { databaseUrl } = childOptions() as { databaseUrl: string }
const pool = new pg.Pool({ connectionString: databaseUrl, max: 16 })
await pool.query(tables)

async function readJson(message: IncomingMessage): Promise<Record<string, unknown>> {
  const parts: Buffer[] = []
  for await (const part of message as AsyncIterable<Buffer>) parts.push(part)
  return JSON.parse(Buffer.concat(parts).toString()) as Record<string, unknown>
}

async function answer(message: IncomingMessage): Promise<[status: number, body: object]> {
  const body = await readJson(message)
  const { amount, customer_phone: phone, payment_method: method, reference } = body
  if (!Number.isInteger(amount) || typeof reference !== 'string' || !/^\d{8}$/.test(String(phone)))
    return [400, { success: false }]
  const { rows } = await pool.query<{ id: string; created_at: Date }>({
    name: 'collect',
    text: collect,
    values: [
      Number(message.headers['x-merchant']),
      method,
      `+223${String(phone)}`,
      amount,
      reference,
      JSON.stringify(body),
    ],
  })
  const [made] = rows
  if (!made) return [409, { success: false }]
  const data = { transaction_id: Number(made.id), reference, amount, status: 'pending' }
  return [202, { success: true, data: { ...data, initiated_at: made.created_at } }]
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
