import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import { openPool } from '../../../src/database/client.ts'
import { fundMerchant } from '../../../src/resources/merchants/fund.ts'
import { jobBounds } from '../../../src/resources/jobs.ts'
import { claimBounds } from '../../../src/requests/store.ts'
import { borrow } from '../../kit/client.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../../kit/app.ts'
import { eventually } from '../../kit/eventually.ts'
import { proveLedger } from '../../kit/ledger.ts'
import { between, readTableReads } from '../../kit/table-reads.ts'
import { useBounds } from '../../kit/use-bounds.ts'

// A new database has no statistics, or autovacuum makes them at a bad moment. A session keeps the plan that
// it made then: where the plan reads a whole table or index, each payment costs more than the one before.
vi.mock(import('../../../src/requests/schedule.ts'), async (original) =>
  (await import('../../kit/quick-polls.ts')).quickPolls(await original()),
)
useBounds(claimBounds, { operatorQueryIntervalMs: 100 })
// The proof of what is new in the books comes at no time that a test can choose.
useBounds(jobBounds, { resolveEveryMs: 200, payoutsDueEveryMs: 200, auditEveryMs: 3_600_000 })

let service: TestApp
afterEach(() => service.close())

/** The lives that begin together, by kind. */
const together = { payA: 14, payC: 8, depositA: 6, depositC: 4, payout: 6, link: 6, recipients: 6 }
const size = Object.values(together).reduce((sum, count) => sum + count)

/** Begins `size` lives through every door of the service, of customers who confirm at once. */
async function begin(shop: TestMerchant, slug: string): Promise<void> {
  const call = async (path: string, body: object) => {
    const answer = await service.rest('POST', path, { token: shop.token, body })
    if (answer.status >= 300) throw new Error(`POST ${path} answered ${JSON.stringify(answer.body)}`)
    return answer.body['data'] as { id: number }
  }
  const times = (count: number, act: () => Promise<unknown>) => Array.from({ length: count }, act)
  const named = () => ({ reference: randomUUID() })
  const collect = (operator: string) => () =>
    call('/pay', { ...named(), amount: 5_000, payment_method: operator, customer_phone: phone })
  const deposit = (operator: string) => () =>
    call('/deposit', { ...named(), amount: 1_000, payment_method: operator, customer_phone: phone })
  const payOut = () =>
    call('/payouts', { ...named(), amount: 1_000, payment_method: 'OperatorA', destination_phone: phone })
  const byLink = async () => {
    payers += 1
    const form = { amount: '5000', phone: `7000${String(payers).padStart(4, '0')}` }
    const answer = await fetch(`${service.url}/l/${slug}`, {
      method: 'POST',
      redirect: 'manual',
      headers: { 'X-Forwarded-For': `10.1.${payers >> 8}.${payers & 255}` },
      body: new URLSearchParams(form),
    })
    if (answer.status !== 303) throw new Error(`A payment by a link was answered ${await answer.text()}`)
  }
  const batch = async () => {
    const recipient = { name: 'Awa', account: phone, amount: 1_000, payment_method: 'OperatorA' }
    const recipients = Array.from({ length: together.recipients }, () => recipient)
    const { id } = await call('/bulk/batches', { recipients })
    await call(`/bulk/batches/${id}/process`, {})
  }
  await Promise.all([
    ...times(together.payA, collect('OperatorA')),
    ...times(together.payC, collect('OperatorC')),
    ...times(together.depositA, deposit('OperatorA')),
    ...times(together.depositC, deposit('OperatorC')),
    ...times(together.payout, payOut),
    ...times(together.link, byLink),
    batch(),
  ])
}

const phone = '+22370000001'
/** Each payer by a link has a number and an address of their own. */
let payers = 0

/** Opens sessions whose own reads are not counted. */
function openWatcher(): pg.Pool {
  const connection = { ...service.database.connection, options: '-c track_counts=off' }
  const watcher = openPool(connection, 1, null, () => {})
  onTestFinished(() => watcher.end())
  return watcher
}

/** Waits until each life has ended, and its events, counts and audit entries were worked off. */
async function untilQuiet(watcher: pg.Pool, lives: number): Promise<void> {
  await eventually(async () => {
    const { rows } = await watcher.query<{ ended: number; left: number }>(
      `SELECT (SELECT count(*)::int FROM transaction WHERE status = 'success')
         + (SELECT count(*)::int FROM payout WHERE status = 'completed')
         + (SELECT count(*)::int FROM batch_recipient WHERE status = 'success') AS ended,
         (SELECT count(*)::int FROM audit_unchained) AS left`,
    )
    expect(rows[0]).toEqual({ ended: lives, left: 0 })
  })
}

async function live(watcher: pg.Pool, shop: TestMerchant, slug: string, from: number, to: number) {
  for (let lives = from; lives < to; lives += size) {
    await begin(shop, slug)
    // The next lives begin before the last of these have ended.
    await ended(watcher, lives + size * 0.6)
  }
  await untilQuiet(watcher, to)
}

async function ended(watcher: pg.Pool, lives: number): Promise<void> {
  await eventually(async () => {
    const { rows } = await watcher.query<{ count: number }>(
      "SELECT count(*)::int FROM operator_request WHERE state = 'settled'",
    )
    return (rows[0]?.count ?? 0) >= lives
  })
}

interface Moment {
  /** Lives that are measured. */
  lives: number
  /** Lives before the moment. */
  after?: number
  analyse?: (owner: pg.Pool) => Promise<unknown>
}

/** Autovacuum analyses a table when it likes: also when all of its rows are dead, and it looks empty. */
const moments: Record<string, Moment> = {
  'never analysed': { lives: 2_000 },
  'analysed while they are empty': { lives: 400, analyse: (owner) => owner.query('ANALYZE') },
  'analysed after 50 lives, as if all rows were dead': { lives: 400, after: 50, analyse: analyseDead },
}

/** The numbers of rows that ANALYZE counts stay, although its transaction is rolled back. */
async function analyseDead(owner: pg.Pool): Promise<void> {
  const { rows } = await owner.query<{ name: string }>(
    `SELECT relname AS name FROM pg_stat_user_tables WHERE schemaname = 'public' AND n_tup_ins > 20`,
  )
  const client = await borrow(owner)
  await client.query('BEGIN; SET LOCAL session_replication_role = replica')
  for (const { name } of rows) await client.query(`DELETE FROM ${client.escapeIdentifier(name)}`)
  await client.query('ANALYZE; ROLLBACK')
  client.release(true)
}

/** Starts a service whose tables nothing analyses by itself, with a merchant and a payment link. */
async function open(): Promise<{ shop: TestMerchant; slug: string }> {
  service = await startTestApp({
    TRUSTED_PROXIES: '127.0.0.1',
    RATE_LIMIT_WRITES: '1000000',
    RATE_LIMIT_PROMPTS: '1000000',
  })
  const { owner } = service.database
  const { rows } = await owner.query<{ name: string }>(
    `SELECT relname AS name FROM pg_stat_user_tables WHERE schemaname = 'public'`,
  )
  for (const { name } of rows) await owner.query(`ALTER TABLE ${name} SET (autovacuum_enabled = false)`)
  const shop = await service.merchant()
  await fundMerchant(service.app.services, shop.merchantId, { amount: 10_000_000n })
  const body = { title: 'Café', amount: 5_000 }
  const link = await service.rest('POST', '/payment-links', { token: shop.token, body })
  return { shop, slug: link.body['data'].url_slug as string }
}

test.each(Object.entries(moments))(
  'on a new database with tables %s the last lives read no more than the first',
  async (_, { lives, after = 0, analyse }) => {
    const { shop, slug } = await open()
    const { owner, database } = service.database
    const watcher = openWatcher()
    if (after > 0) await live(watcher, shop, slug, 0, after)
    await analyse?.(owner)
    const quarter = lives / 4
    const counts = [await readTableReads(owner, database.pool)]
    for (let part = 0; part < 4; part += 1) {
      await live(watcher, shop, slug, after + part * quarter, after + (part + 1) * quarter)
      counts.push(await readTableReads(owner, database.pool))
    }
    const [begun, first, , third, last] = counts
    if (!begun || !first || !third || !last) throw new Error('not all quarters were counted')
    const grown = between(begun.grown, last.grown)
    const scanned = Array.from(between(begun.scans, last.scans).keys())
    expect(scanned.filter((name) => (grown.get(name) ?? 0) > lives / 10)).toEqual([])
    const was = between(begun.read, first.read)
    const perLife = Array.from(between(third.read, last.read), ([name, read]) => {
      return { name, first: (was.get(name) ?? 0) / quarter, last: read / quarter }
    })
    expect(perLife.map(({ name }) => name)).toContain('operator_request')
    // The jobs look for work by the clock and some sessions hand in their counts late: that is some rows for
    // each life. A statement that reads all rows once for several lives reads far more.
    expect(perLife.filter((each) => each.last > each.first * 1.5 + 10)).toEqual([])
    expect(await proveLedger(database.pool)).toEqual([])
  },
  400_000,
)
