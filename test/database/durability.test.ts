import { expect, onTestFinished, test } from 'vitest'
import { assertDurable } from '../../src/database/durability.ts'
import { borrow } from '../kit/client.ts'
import { createTestDatabase } from '../kit/database.ts'

test('a database that may forget is refused by the names of its settings', async () => {
  const database = await createTestDatabase()
  onTestFinished(() => database.drop())
  const client = await borrow(database.owner)
  // The tests' own cluster is not durable on purpose; a cluster that an operator of the service provides must
  // be.
  const { rows } = await client.query<{ name: string }>(
    `SELECT name FROM pg_settings
     WHERE name IN ('fsync', 'full_page_writes') AND setting = 'off' ORDER BY name`,
  )
  const off = rows.map(({ name }) => name)
  const complaint = () =>
    assertDurable(client).then(
      () => '',
      (error: Error) => error.message,
    )
  await client.query('SET synchronous_commit = off')
  expect(await complaint()).toContain([...off.slice(0, 1), 'synchronous_commit', ...off.slice(1)].join(', '))
  await client.query('SET synchronous_commit = on')
  expect(await complaint()).not.toContain('synchronous_commit')
})
