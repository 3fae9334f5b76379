import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import pg from 'pg'
import { childOptions } from '../child.ts'

// The limit of `nested`: one hand-written statement gives the whole answer as text.
const read = `
  SELECT json_build_object('data', json_build_object('transactions', json_build_object(
    'totalCount', (SELECT sum(n) FROM (
      SELECT n FROM transaction_count WHERE merchant_id = $1
      UNION ALL SELECT n FROM transaction_count_change WHERE merchant_id = $1) AS counted),
    'nodes', (SELECT json_agg(json_build_object('databaseId', id, 'reference', reference, 'status', status,
        'paymentMethod', payment_method, 'amount', amount, 'customerPhone', customer_phone,
        'createdAt', created_at))
      FROM (SELECT * FROM transaction WHERE merchant_id = $1 ORDER BY id DESC LIMIT 50) AS page)
  )))::text AS answer`

const { databaseUrl } = childOptions() as { databaseUrl: string }
const pool = new pg.Pool({ connectionString: databaseUrl, max: 16 })
const server = createServer((message, response) => {
  const merchant = Number(new URL(message.url ?? '/', 'http://limit').searchParams.get('merchant'))
  void pool.query<{ answer: string }>({ name: 'read', text: read, values: [merchant] }).then(
    ({ rows }) => {
      response.writeHead(200, { 'Content-Type': 'application/json' })
      response.end(rows[0]?.answer)
    },
    (error: unknown) => response.writeHead(500).end(String(error)),
  )
})
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
process.on('disconnect', () => process.exit())
