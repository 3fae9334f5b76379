import { expect, test } from 'vitest'
import { assertDurable } from '../../src/database/durability.ts'
import { createTestDatabase } from '../support/database.ts'

test('a database that may forget is refused by the names of its settings', async () => {
  const { owner, drop } = await createTestDatabase()
  const { rows } = await owner.query<{ name: string }>(
    `SELECT name FROM pg_settings
     WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes') AND setting = 'off' ORDER BY name`,
  )
  // The tests' own cluster forgets on purpose; a cluster that somebody brings may not.
  if (rows.length === 0) await expect(assertDurable(owner)).resolves.toBeUndefined()
  for (const { name } of rows) await expect(assertDurable(owner)).rejects.toThrow(name)

  const client = await owner.connect()
  await client.query('SET synchronous_commit = off')
  await expect(assertDurable(client)).rejects.toThrow('synchronous_commit')
  client.release(true)
  await drop()
})
