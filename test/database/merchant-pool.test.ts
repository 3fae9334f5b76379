import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { type Database, openDatabase } from '../../src/database/client.ts'
import { asMerchant } from '../../src/database/merchant-pool.ts'
import { assertTenantRls, migrate, serviceRole } from '../../src/database/migrate.ts'
import { borrow } from '../kit/client.ts'
import { makeMerchant, type SignedInMerchant } from '../kit/merchants.ts'
import { collectMany, item } from '../kit/money.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'
import { createPlainAccount } from '../kit/plain-account.ts'

/** How many requests the pool is shaken with; more by hand. */
const requests = Number(process.env['POOL_REQUESTS'] ?? 4_000)
const callers = 64
const perMerchant = 5

let db: TestDatabase
let narrow: Database
let shops: SignedInMerchant[]
beforeAll(async () => {
  db = await createTestDatabase()
  narrow = openDatabase({
    connection: db.connection,
    poolMax: 1,
    merchantPoolMax: 4,
    role: serviceRole,
    log: () => {},
  })
  shops = await Promise.all(Array.from({ length: 8 }, () => makeMerchant(db.database.pool)))
  for (const shop of shops) {
    const items = Array.from({ length: perMerchant }, () => item(shop))
    await collectMany(db.database.pool, items)
  }
})
afterAll(async () => {
  await narrow.close()
  await db.drop()
})

/** The merchants of the transactions that a statement without any filter finds. */
async function owners(on: Database): Promise<number[]> {
  const { rows } = await on.merchantPool.query<{ merchant_id: number }>('SELECT merchant_id FROM transaction')
  return rows.map(({ merchant_id }) => merchant_id)
}
const own = (shop: SignedInMerchant) => Array.from({ length: perMerchant }, () => shop.merchantId)

/** With one session for all merchants. */
function openSingle(): Database {
  const { connection } = db
  const bounds = { poolMax: 1, merchantPoolMax: 1 }
  const single = openDatabase({ connection, ...bounds, role: serviceRole, log: () => {} })
  onTestFinished(() => single.close())
  return single
}
const shopAt = (n: number) => shops[n % shops.length] as SignedInMerchant

describe('the data that a merchant reads', () => {
  test('is its own, through SQL and through Prisma, for every query', async () => {
    const [a, b] = [shopAt(0), shopAt(1)]
    expect(await asMerchant(a.merchantId, () => owners(db.database))).toEqual(own(a))
    const { prisma } = db.database
    const read = await asMerchant(b.merchantId, async () => ({
      all: (await prisma.transaction.findMany()).map(({ merchantId }) => merchantId),
      foreign: await prisma.transaction.findMany({ where: { merchantId: a.merchantId } }),
      merchants: (await prisma.merchant.findMany()).map(({ id }) => id),
      count: await prisma.transaction.count(),
    }))
    expect(read).toEqual({ all: own(b), foreign: [], merchants: [b.merchantId], count: perMerchant })
  })

  test('is nothing without a merchant', async () => {
    expect(await owners(db.database)).toEqual([])
    expect(await asMerchant(null, () => owners(db.database))).toEqual([])
    expect(await db.database.prisma.merchant.findMany()).toEqual([])
  })

  test('is its own where it waited for the session of another', async () => {
    const single = openSingle()
    const held = await asMerchant(shopAt(0).merchantId, () => borrow(single.merchantPool))
    const waiting = [1, 2, 1].map((n) => asMerchant(shopAt(n).merchantId, () => owners(single)))
    asMerchant(shopAt(3).merchantId, () => held.release())
    expect(await Promise.all(waiting)).toEqual([1, 2, 1].map((n) => own(shopAt(n))))
  })

  test('never comes over a session that could not be bound', async () => {
    const single = openSingle()
    const client = await asMerchant(shopAt(1).merchantId, () => borrow(single.merchantPool))
    const cut = (_statement: string, callback: (error: Error) => void) => callback(new Error('cut'))
    const query = vi.spyOn(client, 'query').mockImplementation(cut)
    client.release()
    const { merchantId } = shopAt(2)
    await expect(asMerchant(merchantId, () => owners(single))).rejects.toThrow('cut')
    expect(query).toHaveBeenCalledOnce()
    expect(await asMerchant(merchantId, () => owners(single))).toEqual(own(shopAt(2)))
    expect(query).toHaveBeenCalledOnce()
  })

  test('is its own where several merchants ask by a unique key in one tick', async () => {
    const { prisma } = db.database
    const { rows } = await db.owner.query<{ merchantId: number; id: bigint }>(
      'SELECT merchant_id AS "merchantId", min(id) AS id FROM transaction GROUP BY 1 ORDER BY 1',
    )
    const read = await Promise.all(
      rows.map((key) =>
        asMerchant(key.merchantId, async () => {
          const [merchant, payment] = await Promise.all([
            prisma.merchant.findUniqueOrThrow({ where: { id: key.merchantId } }),
            prisma.transaction.findUnique({ where: { merchantId_id: key } }),
          ])
          return { merchantId: merchant.id, id: payment?.id }
        }),
      ),
    )
    expect(read).toEqual(rows)
  })

  test('is written behind the wall too: a beneficiary of its own, and of no other merchant', async () => {
    const { prisma } = db.database
    const [a, b] = [shopAt(0).merchantId, shopAt(1).merchantId]
    const data = { name: 'Awa', account: '+22370000001', paymentMethod: 'OperatorA' } as const
    const { id } = await asMerchant(a, async () =>
      prisma.beneficiary.create({ data: { ...data, merchantId: a } }),
    )
    const forB = asMerchant(a, async () => prisma.beneficiary.create({ data: { ...data, merchantId: b } }))
    await expect(forB).rejects.toThrow('row-level security')
    const write = (merchantId: number) =>
      asMerchant(merchantId, async () =>
        prisma.beneficiary.updateMany({ where: { id }, data: { name: 'Bintou' } }),
      )
    expect([await write(b), await write(a)]).toEqual([{ count: 0 }, { count: 1 }])
    const give = asMerchant(a, async () =>
      prisma.beneficiary.updateMany({ where: { id }, data: { merchantId: b } }),
    )
    await expect(give).rejects.toThrow('permission denied')
    const forget = asMerchant(a, async () => prisma.beneficiary.deleteMany({ where: { id } }))
    await expect(forget).rejects.toThrow('permission denied')
  })

  test('fails alike where no row has the unique key', async () => {
    const { prisma } = db.database
    const [a, b] = [shopAt(0).merchantId, shopAt(1).merchantId]
    const missing = asMerchant(a, async () => prisma.merchant.findUniqueOrThrow({ where: { id: b } }))
    await expect(missing).rejects.toMatchObject({ code: 'P2025' })
  })

  test(`${requests} requests of ${callers} callers over four sessions see no row of another`, async () => {
    let next = 0
    let foreign = 0
    let seen = 0
    await Promise.all(
      Array.from({ length: callers }, async () => {
        while (next < requests) {
          const n = (next += 1)
          const { merchantId } = shopAt(n * 7 + (n >> 3))
          const ids = await asMerchant(merchantId, async () =>
            n % 2
              ? owners(narrow)
              : (await narrow.prisma.transaction.findMany({ select: { merchantId: true } })).map(
                  (row) => row.merchantId,
                ),
          )
          seen += ids.length
          foreign += ids.filter((id) => id !== merchantId).length
        }
      }),
    )
    expect(foreign).toBe(0)
    expect(seen).toBe(next * perMerchant)
    expect(narrow.merchantPool.totalCount).toBe(4)
  })

  test('is found by the index, as without the wall', async () => {
    const plan = await asMerchant(shopAt(0).merchantId, () =>
      db.database.merchantPool.query<{ 'QUERY PLAN': string }>(
        'EXPLAIN SELECT * FROM transaction WHERE merchant_id = 1 AND id < 100 ORDER BY id DESC LIMIT 20',
      ),
    )
    expect(plan.rows.map((row) => row['QUERY PLAN']).join('\n')).toMatch(/Index Cond: .*merchant_id/)
  })
})

describe('the wall', () => {
  test('stands around every table that carries a merchant, the same everywhere', async () => {
    const { rows } = await db.owner.query<{ name: string; walled: boolean; policies: string[] }>(
      `SELECT c.relname AS name, c.relrowsecurity AND c.relforcerowsecurity AS walled,
         ARRAY(SELECT concat(p.polname, ' to ', p.polroles::regrole[], ' for ', p.polcmd, ': ',
             pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid))
           FROM pg_policy p WHERE p.polrelid = c.oid AND p.polpermissive ORDER BY p.polname) AS policies
       FROM pg_class c
       WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
         AND (c.relname = 'merchant' OR EXISTS (
           SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'merchant_id'))`,
    )
    const setting = `NULLIF(current_setting('app.merchant'::text, true), ''::text)`
    const bound = `( SELECT (${setting})::integer AS "nullif")`
    expect(rows.length).toBeGreaterThan(9)
    for (const { name, walled, policies } of rows) {
      const column = name === 'merchant' ? 'id' : 'merchant_id'
      expect({ name, walled, policies }).toEqual({
        name,
        walled: true,
        policies: [
          'every_merchant to {payments_service} for *: true',
          'every_row to {payments_owner} for *: true',
          `tenant_isolation to {payments_merchant} for *: (${column} = ${bound})`,
        ],
      })
    }
  })

  test('holds a role that may read these tables, keep its beneficiaries, and nothing else', async () => {
    const { rows } = await db.owner.query<{ may: string }>(
      `SELECT table_name || ': ' || privilege_type AS may FROM information_schema.table_privileges
       WHERE grantee = 'payments_merchant'
       UNION SELECT routine_name || '()' FROM information_schema.routine_privileges
       WHERE grantee = 'payments_merchant'
       UNION SELECT table_name || '.' || column_name || ': UPDATE' FROM information_schema.column_privileges
       WHERE grantee = 'payments_merchant' AND privilege_type = 'UPDATE'`,
    )
    expect(rows.map(({ may }) => may).toSorted()).toEqual([
      'approval_verdict: SELECT',
      'audit_entry: SELECT',
      'audit_head: SELECT',
      'audit_link: SELECT',
      'audit_unchained: INSERT',
      'audit_unchained: SELECT',
      'balance_at()',
      'balance_before()',
      'balance_before_entry()',
      'balance_snapshot: SELECT',
      'batch: SELECT',
      'batch_recipient: SELECT',
      'batch_stats()',
      'beneficiary.account: UPDATE',
      'beneficiary.category: UPDATE',
      'beneficiary.is_active: UPDATE',
      'beneficiary.name: UPDATE',
      'beneficiary.payment_method: UPDATE',
      'beneficiary.updated_at: UPDATE',
      'beneficiary: INSERT',
      'beneficiary: SELECT',
      'create_beneficiary()',
      'create_payment_link()',
      'deposit_approval: SELECT',
      'disbursement_change: SELECT',
      'event: SELECT',
      'event_log_position: SELECT',
      'event_origin()',
      'folded()',
      'ids_by_words()',
      'ledger_entry: SELECT',
      'link_figure: SELECT',
      'link_slot_time()',
      'link_slots_free_at()',
      'link_stats()',
      'merchant: SELECT',
      'merchant_balance: SELECT',
      'page_of_recipients()',
      'pages_of_recipients()',
      'payment_figure: SELECT',
      ...['amount', 'description', 'expires_at', 'is_active', 'title', 'updated_at', 'usage_limit'].map(
        (column) => `payment_link.${column}: UPDATE`,
      ),
      'payment_link: SELECT',
      'payment_link_words()',
      'payment_stats()',
      'payment_times()',
      'payout: SELECT',
      'payout_count: SELECT',
      'payout_ids_of_period()',
      'payout_words()',
      'recipient_matches()',
      'recipient_words()',
      'record_change()',
      'refunds_of()',
      'sandbox_clock: SELECT',
      'service_now()',
      'session: SELECT',
      'settings_change: SELECT',
      'settle_class()',
      'settle_time: SELECT',
      'statement_lines()',
      'statement_of()',
      'stats_pieces()',
      'sum_of_recipients()',
      'sums_of_recipients()',
      'team_member: SELECT',
      'timeline_of()',
      'transaction: SELECT',
      'transaction_at()',
      'transaction_block: SELECT',
      'transaction_block_count: SELECT',
      'transaction_by_reference()',
      'transaction_count: SELECT',
      'transaction_count_change: SELECT',
      'transaction_hour: SELECT',
      'transaction_of_kinds_at()',
      'transaction_words()',
      'update_beneficiary()',
      'update_payment_link()',
      'webhook_attempt: SELECT',
      'webhook_delivery: SELECT',
    ])
    const { rows: hidden } = await db.owner.query<{ column_name: string }>(
      `SELECT column_name FROM information_schema.columns WHERE table_name = 'webhook_endpoint'
       AND NOT has_column_privilege('payments_merchant', 'webhook_endpoint', column_name, 'SELECT')`,
    )
    expect(hidden.map((column) => column.column_name).toSorted()).toEqual([
      'previous_secret_encrypted',
      'secret_encrypted',
    ])
    const roles = await db.owner.query(
      `SELECT rolsuper, rolbypassrls, rolcreaterole, ARRAY(
         SELECT roleid::regrole::text FROM pg_auth_members WHERE member = r.oid) AS member_of
       FROM pg_roles r WHERE rolname IN ('payments_merchant', 'payments_service', 'payments_owner')`,
    )
    const plain = { rolsuper: false, rolbypassrls: false, rolcreaterole: false, member_of: [] }
    expect(roles.rows).toEqual([plain, plain, plain])
  })

  test('is missed at the start where its role is above it', async () => {
    const role = `above_${process.pid}`
    const client = await borrow(db.owner)
    await client.query(`BEGIN; CREATE ROLE ${role}`)
    await expect(assertTenantRls(client, role)).resolves.toBeUndefined()
    for (const above of [
      'ALTER ROLE * BYPASSRLS',
      'GRANT payments_service TO *',
      'GRANT payments_owner TO *',
    ]) {
      await client.query(`SAVEPOINT before; ${above.replace('*', role)}`)
      await expect(assertTenantRls(client, role)).rejects.toThrow('must hold no rights of others')
      await client.query('ROLLBACK TO before')
    }
    await client.query('ROLLBACK')
    client.release()
  })
})

test('an ordinary account that owns its database has the same walls', async () => {
  const { url } = await createPlainAccount()
  await migrate(url)
  const owned = openDatabase({ connection: url, poolMax: 2, role: serviceRole, log: () => {} })
  try {
    const [a, b] = [await makeMerchant(owned.pool), await makeMerchant(owned.pool)]
    expect(await collectMany(owned.pool, [item(a), item(b)])).toMatchObject([
      { outcome: 'made' },
      { outcome: 'made' },
    ])
    expect(await owners(owned)).toEqual([])
    expect(await asMerchant(b.merchantId, () => owners(owned))).toEqual([b.merchantId])
    expect((await owned.pool.query('SELECT FROM transaction')).rowCount).toBe(2)
  } finally {
    await owned.close()
  }
})
