import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { routes } from '../../src/http/rest/routes.ts'
import { useTestDatabase } from '../kit/database.ts'
import { makeMerchant } from '../kit/merchants.ts'

// A key that REST or GraphQL took before migration 0007 is used up for both of them afterwards.

const db = await useTestDatabase()
const migration = readFileSync(
  join(import.meta.dirname, '../../prisma/migrations/0007_operations_of_keys/migration.sql'),
  'utf8',
)
let merchantId: number
beforeEach(async () => {
  ;({ merchantId } = await makeMerchant(db.owner))
})

let taken = 0
/** Takes a key as the service did before the migration, a second after the key before. */
const take = (operation: string, key: string, answer: string | null = 'encrypted') =>
  db.owner.query(
    `INSERT INTO idempotency_key (merchant_id, operation, key, digest, operation_id, answer, created_at)
     VALUES ($1, $2, $3, sha256(convert_to($2, 'UTF8')), 
       substring(sha256(convert_to($3, 'UTF8')) FOR 16), $4,
       now() + make_interval(secs => $5))`,
    [merchantId, operation, key, answer, (taken += 1)],
  )

async function keys(): Promise<{ operation: string; key: string; answer: unknown }[]> {
  const { rows } = await db.owner.query(
    `SELECT operation, key, answer FROM idempotency_key WHERE merchant_id = $1 ORDER BY operation, key`,
    [merchantId],
  )
  return rows
}

const writes = routes.filter(({ method, path }) => method !== 'GET' && path !== '/auth')

test.each(writes)('a key of $method $path belongs to the mutation of $operation', async (route) => {
  const { method, path, operation } = route
  const mutation = operation[0]?.toLowerCase() + operation.slice(1)
  await take(`${method} ${path}`, 'k-rest')
  await take(`mutation ${mutation}`, 'k-graphql')
  await db.owner.query(migration)
  expect(await keys()).toEqual([
    { operation: mutation, key: 'k-graphql', answer: null },
    { operation: mutation, key: 'k-rest', answer: null },
  ])
})

test('of two requests under one key the first one keeps it, and other keys stay', async () => {
  await take('mutation deposit', 'k-1')
  await take('POST /deposit', 'k-1')
  await take('POST /pay', 'k-1')
  await take('mutation refundTransaction', 'k-2')
  await db.owner.query(migration)
  const { rows } = await db.owner.query(
    `SELECT operation, key, digest = sha256(convert_to('mutation deposit', 'UTF8')) AS "isFirst"
     FROM idempotency_key WHERE merchant_id = $1 ORDER BY operation`,
    [merchantId],
  )
  expect(rows).toEqual([
    { operation: 'collectPayment', key: 'k-1', isFirst: false },
    { operation: 'deposit', key: 'k-1', isFirst: true },
    { operation: 'refundTransaction', key: 'k-2', isFirst: false },
  ])
})
