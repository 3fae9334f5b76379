import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import pg from 'pg'
import { childOptions } from '../child.ts'

// The limit of `nested`: one hand-written statement gives each whole answer as text.
const transactions = `
  SELECT json_build_object('data', json_build_object('transactions', json_build_object(
    'totalCount', (SELECT sum(n) FROM (
      SELECT n FROM transaction_count WHERE merchant_id = $1
      UNION ALL SELECT n FROM transaction_count_change WHERE merchant_id = $1) AS counted),
    'nodes', (SELECT json_agg(json_build_object('databaseId', id, 'reference', reference, 'status', status,
        'paymentMethod', payment_method, 'amount', amount, 'customerPhone', customer_phone,
        'createdAt', created_at))
      FROM (SELECT * FROM transaction WHERE merchant_id = $1 ORDER BY id DESC LIMIT 50) AS page)
  )))::text AS answer`

const batches = `
  SELECT json_build_object('data', json_build_object('batches', json_build_object(
    'totalCount', (SELECT count(*) FROM batch WHERE merchant_id = $1),
    'nodes', (SELECT json_agg(json_build_object('databaseId', id, 'title', title, 'status', status,
        'recipientCount', recipient_count, 'totalAmount', total_amount,
        'recipients', json_build_object(
          'totalCount', recipient_count,
          'nodes', (SELECT json_agg(json_build_object(
              'databaseId', r.id, 'name', r.name, 'account', r.account,
              'amount', r.amount, 'paymentMethod', r.payment_method, 'status', r.status))
            FROM (
              SELECT * FROM batch_recipient WHERE batch_id = page.id ORDER BY id DESC LIMIT 50
            ) AS r))))
      FROM (SELECT * FROM batch WHERE merchant_id = $1 ORDER BY id DESC LIMIT 20) AS page)
  )))::text AS answer`

const { databaseUrl } = childOptions() as { databaseUrl: string }
const pool = new pg.Pool({ connectionString: databaseUrl, max: 16 })
const server = createServer((message, response) => {
  const { pathname, searchParams } = new URL(message.url ?? '/', 'http://limit')
  const merchant = Number(searchParams.get('merchant'))
  const [name, read] =
    pathname === '/batches' ? (['batches', batches] as const) : (['transactions', transactions] as const)
  void pool.query<{ answer: string }>({ name, text: read, values: [merchant] }).then(
    ({ rows }) => {
      response.writeHead(200, { 'Content-Type': 'application/json' })
      response.end(rows[0]?.answer)
    },
    (error: unknown) => response.writeHead(500).end(String(error)),
  )
})
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
process.on('disconnect', () => process.exit())
