import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

// Nodes of the previous release work beside a schema of this one while a deployment is under way: whatever
// they may ask (`npm run release:statements`, at each release) must still be answered.

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
async function refusedOf(all: typeof uses): Promise<string[]> {
  const session = await db.owner.connect()
  const refused: string[] = []
  try {
    for (const { role, statement } of all) {
      await session.query(`SET ROLE ${role}`)
      await session
        .query(`EXPLAIN (GENERIC_PLAN) ${statement}`)
        .catch((error: Error) => refused.push(`${nameOf(statement)}: ${error.message}`))
    }
  } finally {
    session.release(true)
  }
  return refused
}

/** The function or table that a statement is about. */
function nameOf(statement: string): string {
  return /^SELECT (\w+)\(|(?:FROM|INTO|UPDATE) "?(\w+)/.exec(statement)?.slice(1).find(Boolean) ?? statement
}

test(`the schema answers all that ${release} asks`, async () => {
  expect(await refusedOf(uses)).toEqual([])
})
