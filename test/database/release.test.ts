import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readSignatures } from '../../prisma/signatures.ts'
import { borrow } from '../kit/client.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'

// During a deployment nodes of the previous release work on the new schema: each of their statements (`npm
// run release:record`, at each release) must still be answered.

const { release, uses } = JSON.parse(readFileSync(join(import.meta.dirname, 'release.json'), 'utf8')) as {
  release: string
  uses: { role: string; statement: string }[]
}

let db: TestDatabase
beforeAll(async () => {
  db = await createTestDatabase()
})
afterAll(() => db.drop())

/** Plans each statement under its role, which checks names, types and rights, and runs nothing. */
async function refusedOf(all: typeof uses, { owner } = db): Promise<string[]> {
  const session = await borrow(owner)
  const refused: string[] = []
  for (const { role, statement } of all) {
    await session.query(`SET ROLE ${role}`)
    await session
      .query(`EXPLAIN (GENERIC_PLAN) ${statement}`)
      .catch((error: Error) => refused.push(`${nameOf(statement)}: ${error.message}`))
  }
  session.release(true)
  return refused
}

/** The function or table that a statement is about. */
function nameOf(statement: string): string {
  return /^SELECT (\w+)\(|(?:FROM|INTO|UPDATE) "?(\w+)/.exec(statement)?.slice(1).find(Boolean) ?? statement
}

const keptOnce =
  'a node of this release keeps the function in the database until the release after it (applyFunctions)'
/** The arguments by which lists of recipients were filtered before they took several values. */
const oneKind = 'recipient_status, provider, text, text'
const pageTypes = 'bigint, bigint, boolean, integer, integer'
/**
 * Statements of the previous release that this schema no longer answers, each with the reason why that is
 * bearable while its nodes are still at work. Empty it when `release.json` is written anew.
 */
const ended: Readonly<Record<string, string>> = {
  'record_callback: function record_callback(provider, text, text, bigint, uuid, text) does not exist':
    keptOnce,
  'sweep_link_slots: function sweep_link_slots() does not exist': keptOnce,
  'sweep_people: function sweep_people() does not exist': keptOnce,
  ...Object.fromEntries(
    [
      ['is_meant', `batch_recipient, ${oneKind}`],
      ['recipients_page', `integer, integer, ${oneKind}, ${pageTypes}`],
      ['recipients_pages', `integer, integer[], ${oneKind}, ${pageTypes}`],
      ['recipients_total', `integer, integer, ${oneKind}`],
      ['recipients_totals', `integer, integer[], ${oneKind}`],
      ['transaction_of_kind_at', 'integer, transaction_type, provider, transaction_status, bigint, bigint'],
    ].map(([name, types]) => [`${name}: function ${name}(${types}) does not exist`, keptOnce]),
  ),
}

test(`the schema answers all that ${release} asks`, async () => {
  expect(uses.length).toBeGreaterThan(100)
  expect(new Set(await refusedOf(uses))).toEqual(new Set(Object.keys(ended)))
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
    const refused = await refusedOf(uses, other)
    expect(refused.some((line) => line.startsWith(words))).toBe(true)
  } finally {
    await other.drop()
  }
})

// PostgreSQL does not replace a function by one with other names or another result. Two functions of one name
// break our GRANT and REVOKE, which name functions without their arguments.
test('a function that changed its signature since the previous release has a new name', async () => {
  const path = join(import.meta.dirname, 'release-functions.json')
  const { functions } = JSON.parse(readFileSync(path, 'utf8')) as { functions: string[] }
  const nameOfFunction = (signature: string) => signature.slice(0, signature.indexOf('('))
  const before = new Set(functions.map(nameOfFunction))
  const changed = (await readSignatures(db.owner)).filter(
    (signature) => before.has(nameOfFunction(signature)) && !functions.includes(signature),
  )
  expect(before.size).toBeGreaterThan(200)
  expect(changed).toEqual([])
})
