import { invariant } from '../../../src/shared/invariant.ts'
import type { TestApp } from '../app.ts'

/** Takes row-level security off every table for a while, as only their owner can. */
export async function withoutSecondWall(service: TestApp, work: () => Promise<void>): Promise<void> {
  const { owner } = service.database
  const { rows } = await owner.query<{ name: string }>(
    `SELECT relname AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relrowsecurity`,
  )
  invariant(rows.length > 9, 'the tables have row-level security')
  // A new session is refused while the wall is off, so all sessions of the pool are opened before.
  const { merchantPool } = service.app.services.database
  const { max: sessions } = merchantPool.options
  await Promise.all(Array.from({ length: sessions }, () => merchantPool.query('SELECT pg_sleep(0.5)')))
  // One lock at a time: concurrent jobs take their locks in another order.
  const alterEach = async (word: string) => {
    for (const { name } of rows) await owner.query(`ALTER TABLE ${name} ${word} ROW LEVEL SECURITY`)
  }
  await alterEach('DISABLE')
  try {
    await work()
  } finally {
    await alterEach('ENABLE')
  }
}
