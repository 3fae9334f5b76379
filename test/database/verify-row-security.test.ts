import { expect, test } from 'vitest'
import { verifyRowSecurity } from '../../src/database/verify-row-security.ts'
import { useTestDatabase } from '../kit/database.ts'

const db = await useTestDatabase()
const mine = `(SELECT nullif(current_setting('app.merchant', true), '')::int)`

/** Changes the database under the role that owns its tables. */
const change = (statements: string) => db.owner.query(`SET ROLE payments_owner; ${statements}; RESET ROLE`)

test('the policies of the migrations pass', async () => {
  await expect(verifyRowSecurity(db.database.pool)).resolves.toBeUndefined()
})

test.each<[string, string, string]>([
  ['open to all', 'CREATE POLICY open ON payout USING (true)', 'open on payout is not of the service'],
  [
    'open to merchants',
    'CREATE POLICY open ON merchant TO payments_merchant USING (true)',
    'open on merchant is not of the service',
  ],
  [
    'that only reads',
    'CREATE POLICY open ON team_member FOR SELECT TO payments_merchant USING (true)',
    'open on team_member is not of the service',
  ],
  [
    'that hides rows',
    'CREATE POLICY hides ON ledger_entry AS RESTRICTIVE USING (amount > 5)',
    'hides on ledger_entry is not of the service',
  ],
  [
    'with a name in quotation marks',
    'CREATE POLICY "Tout; voir" ON event USING (true)',
    '"Tout; voir" on event is not of the service',
  ],
  [
    'that is given to every role',
    'ALTER POLICY every_merchant ON event TO PUBLIC',
    'every_merchant on event was changed',
  ],
  [
    'that is given to one more role',
    'ALTER POLICY every_merchant ON event TO payments_service, payments_merchant',
    'every_merchant on event was changed',
  ],
  [
    'with another condition',
    'ALTER POLICY tenant_isolation ON payout USING (true)',
    'tenant_isolation on payout was changed',
  ],
  [
    'with one more condition',
    `ALTER POLICY tenant_isolation ON payout USING (merchant_id = ${mine} OR amount > 5)`,
    'tenant_isolation on payout was changed',
  ],
  [
    'whose unbound sessions see all',
    `ALTER POLICY tenant_isolation ON payout USING (merchant_id = coalesce(${mine}, merchant_id))`,
    'tenant_isolation on payout was changed',
  ],
  [
    'about another value',
    `ALTER POLICY tenant_isolation ON merchant USING (id + 0 = ${mine})`,
    'tenant_isolation on merchant was changed',
  ],
  [
    'that asks another setting',
    `ALTER POLICY tenant_isolation ON payout
       USING (merchant_id = ${mine.replace('app.merchant', 'app.other')})`,
    'tenant_isolation on payout was changed',
  ],
  [
    'that asks another function of the same name',
    `CREATE FUNCTION public.current_setting(text, boolean) RETURNS text LANGUAGE sql AS 'SELECT $1';
     ALTER POLICY tenant_isolation ON payout
       USING (merchant_id = ${mine.replace('current_setting', 'public.current_setting')})`,
    'tenant_isolation on payout was changed',
  ],
  [
    'with a condition of writes',
    'ALTER POLICY tenant_isolation ON payout WITH CHECK (true)',
    'tenant_isolation on payout was changed',
  ],
  [
    'of the restrictive kind',
    `DROP POLICY every_row ON batch;
     CREATE POLICY every_row ON batch AS RESTRICTIVE TO payments_owner USING (true)`,
    'every_row on batch was changed',
  ],
  ['that is missing', 'DROP POLICY tenant_isolation ON mail', 'tenant_isolation on mail is missing'],
  [
    'that a new table lacks',
    `CREATE TABLE later (merchant_id int);
     ALTER TABLE later ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY`,
    'every_merchant on later is missing, every_row on later is missing, tenant_isolation on later is missing',
  ],
  ['on a table without row-level security', 'ALTER TABLE payout DISABLE ROW LEVEL SECURITY', 'on payout'],
  ['on a table that forces nothing', 'ALTER TABLE payout NO FORCE ROW LEVEL SECURITY', 'on payout'],
])(
  'a policy %s is refused and named, and the statements of the refusal cure it',
  async (_what, harm, words) => {
    await change(harm)
    const refused = await verifyRowSecurity(db.database.pool).catch((error: unknown) => error)
    expect(refused).toMatchObject({ message: expect.stringContaining(words) })
    const [, cure = ''] = /Run as the account of DATABASE_URL: (.+)$/.exec((refused as Error).message) ?? []
    await db.owner.query(`${cure} RESET ROLE`)
    await verifyRowSecurity(db.database.pool)
  },
)

test('policies of tables without rows of merchants are not asked about', async () => {
  await change('CREATE TABLE other (id int); CREATE POLICY mine ON other USING (true)')
  await expect(verifyRowSecurity(db.database.pool)).resolves.toBeUndefined()
})
