import { randomInt } from 'node:crypto'
import type pg from 'pg'

/** The advice for the case that a pooler between the service and PostgreSQL changes sessions. */
const advice =
  'Point DATABASE_URL at PostgreSQL itself, or at a pooler that passes the startup parameter "options" on ' +
  'and gives each client a session of its own (PgBouncer does not).'

/**
 * Verifies that a new session acts as the requested role. A pooler that drops the startup options gives
 * sessions with another role, which may see other rows.
 * @throws Error that says what was found, and what to do
 */
export async function verifyRole(client: pg.ClientBase, role: string): Promise<void> {
  const { rows } = await client.query<{ role: string }>('SELECT current_user AS role')
  assertRole(rows[0]?.role, role)
}

/**
 * Verifies a new session for merchants' reads: its role; that a second statement still sees the merchant that
 * the first one set, which a pooler in transaction mode does not guarantee; and that row-level security is
 * on.
 */
export async function verifyTenantRls(client: pg.ClientBase, role: string): Promise<void> {
  const probe = makeProbe()
  await client.query(setMerchant(probe))
  // Two statements in one message: the second unbinds the session at no further cost.
  const answers = (await client.query(
    `SELECT current_user AS role, current_setting('app.merchant', true) AS merchant,
       row_security_active(to_regclass('public.merchant')) AS "isTenantIsolated"; ${setMerchant('')}`,
  )) as unknown as pg.QueryResult<{
    role: string
    merchant: string | null
    isTenantIsolated: boolean | null
  }>[]
  const found = answers[0]?.rows[0]
  assertRole(found?.role, role)
  assertKept(found?.merchant, probe)
  if (found?.isTenantIsolated === false) {
    throw new Error(
      `Row-level security is off for the database role ${role}: it would see every merchant. Let an ` +
        `administrator run ALTER ROLE ${role} NOSUPERUSER NOBYPASSRLS; and set row_security to on.`,
    )
  }
}

/**
 * Verifies, once at the start, that two client sessions are two server sessions: each still sees its own
 * merchant after the other set another. A pooler in transaction mode may give both the same server session in
 * turns, although each session alone passes its checks.
 * @throws Error that says what was found, and what to do
 */
export async function verifyOwnSessions(pool: pg.Pool): Promise<void> {
  const first = await pool.connect()
  try {
    const second = await pool.connect()
    try {
      await compareSessions(first, second)
      await Promise.all([first, second].map((session) => session.query(setMerchant(''))))
    } catch (error) {
      second.release(true)
      throw error
    }
    second.release()
  } catch (error) {
    first.release(true)
    throw error
  }
  first.release()
}

async function compareSessions(first: pg.ClientBase, second: pg.ClientBase): Promise<void> {
  const [one, other] = [makeProbe(), makeProbe()]
  await first.query(setMerchant(one))
  await second.query(setMerchant(other))
  // In this order, a pooler that always takes the server session used last fails at the second check, and a
  // pooler that takes its server sessions in turns fails at the first.
  for (const [session, probe] of [[second, other] as const, [first, one] as const]) {
    const { rows } = await session.query<{ merchant: string | null }>(
      `SELECT current_setting('app.merchant', true) AS merchant`,
    )
    assertKept(rows[0]?.merchant, probe)
  }
}

/** Returns a merchant id that no merchant has: a negative number. */
function makeProbe(): string {
  return String(-randomInt(1, 2 ** 31))
}

function setMerchant(merchant: string): string {
  return `SET app.merchant = '${merchant}'`
}

function assertRole(found: string | undefined, role: string): void {
  if (found === role) return
  throw new Error(
    `A new database session acts as "${found}", not as "${role}": something between the service and ` +
      `PostgreSQL drops the startup parameter "options", so merchants would not be isolated. ` +
      advice,
  )
}

function assertKept(found: string | null | undefined, probe: string): void {
  if (found === probe) return
  throw new Error(
    'A database session lost the merchant that it was bound to: something between the service and ' +
      `PostgreSQL changes the server session between two statements (a pooler in transaction mode). ` +
      advice,
  )
}
