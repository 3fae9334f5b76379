import type { Pool } from 'pg'

/** The settings that must be on for a commit to survive a crash. */
const settings = ['fsync', 'synchronous_commit', 'full_page_writes'] as const

/**
 * Refuses a database with one of `settings` off: after a crash, it can lack payments that callers were told
 * about.
 * @throws Error that names the settings
 */
export async function assertDurable(client: Pick<Pool, 'query'>): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT name FROM unnest($1::text[]) AS name WHERE current_setting(name) = 'off'`,
    [settings],
  )
  if (rows.length === 0) return
  const names = rows.map(({ name }) => name).join(', ')
  throw new Error(
    `PostgreSQL has ${names} off, so a crash could lose payments. Turn it on: production does not start so.`,
  )
}
