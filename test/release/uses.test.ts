import { expect, test } from 'vitest'
import { withClient } from '../kit/client.ts'
import { createTestDatabase, useTestDatabase } from '../kit/database.ts'
import { changedSignatures, readSignatures, readUses, refusedOf } from './uses.ts'

// `npm run release:check` asks the statements of the last release of a database that was brought up to date.

const db = await useTestDatabase()
const uses = await withClient(db.owner, readUses)

test('a schema answers all that its own service asks', async () => {
  expect(uses.length).toBeGreaterThan(100)
  expect(await withClient(db.owner, (client) => refusedOf(client, uses))).toEqual([])
})

test.each([
  ['DROP FUNCTION begin_recipients', 'begin_recipients: function begin_recipients('],
  ['REVOKE EXECUTE ON FUNCTION begin_payouts FROM payments_service', 'begin_payouts: permission denied'],
  [
    'ALTER TABLE payout RENAME destination_phone TO phone',
    'payout: column "destination_phone" does not exist',
  ],
  ['REVOKE UPDATE (payment_url) ON transaction FROM payments_service', 'transaction: permission denied'],
])('%s is found', async (change, words) => {
  const other = await createTestDatabase()
  try {
    await other.owner.query(change)
    const refused = await withClient(other.owner, (client) => refusedOf(client, uses))
    expect(refused.some((line) => line.startsWith(words))).toBe(true)
  } finally {
    await other.drop()
  }
})

test('a function with a known name and another signature is found', async () => {
  const signatures = await withClient(db.owner, readSignatures)
  expect(signatures.length).toBeGreaterThan(200)
  const changed = 'begin_payouts(take bigint) SETOF record'
  expect(changedSignatures(signatures, [...signatures, changed, 'fresh(n integer) void'])).toEqual([changed])
})

test('a type with another field is found', async () => {
  const other = await createTestDatabase()
  try {
    const before = await withClient(other.owner, readSignatures)
    await other.owner.query('ALTER TYPE collection_item ADD ATTRIBUTE note text')
    const after = await withClient(other.owner, readSignatures)
    expect(changedSignatures(before, after)).toEqual([
      expect.stringMatching(/^collection_item\(.*note text\)$/),
    ])
  } finally {
    await other.drop()
  }
})
