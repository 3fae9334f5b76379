import { Writable } from 'node:stream'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { passwordBounds } from '../../../src/identity/members/passwords.ts'
import { chainAuditLog, verifyAuditLog } from '../../../src/audit/verify-chain.ts'
import { routes } from '../../../src/http/rest/routes.ts'
import { schema } from '../../../src/resources/schema.ts'
import { readEmail } from '../../../src/http/pages/mail.ts'
import { commands } from '../../../src/terminal/commands.ts'
import { borrow } from '../../kit/client.ts'
import { startTestApp, type TestApp } from '../../kit/app.ts'
import { type MailServer, startMailServer } from '../../kit/mail-server.ts'
import { type AuditedFixture, openFixture, type AuditedShop } from '../../kit/audited/fixture.ts'
import { tampering } from '../../kit/audited/tampering.ts'
import { eventually } from '../../kit/eventually.ts'
import { type Case, mutations, type Prepare } from '../../kit/audited/operations.ts'
import { restWrites } from '../../kit/audited/routes.ts'

// Every operation once: its entry in the audit log, no entry where it is refused, and none of the secrets in
// any place where they do not belong.

const logged = vi.hoisted(() => ({ lines: [] as string[] }))
vi.mock(import('../../../src/telemetry/log.ts'), () => ({
  createLog: () => {
    const sink = new Writable({
      write(chunk, _encoding, done) {
        logged.lines.push(String(chunk))
        done()
      },
    })
    return pino({ level: 'trace', base: null }, sink)
  },
}))
// `passwords.test.ts` tests the cost of a password hash.
Object.assign(passwordBounds, { memoryKib: 64, passes: 1 })

let mail: MailServer
let service: TestApp
let fixture: AuditedFixture
beforeAll(async () => {
  mail = await startMailServer()
  service = await startTestApp({ SMTP_URL: mail.url, MAIL_FROM: 'Paiements <no-reply@pay.test>' })
  fixture = openFixture(service, mail)
  await service.database.owner.query(`
    CREATE TABLE unrecorded (merchant_id int PRIMARY KEY);
    CREATE FUNCTION refuse_entry() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
      IF EXISTS (SELECT FROM unrecorded u WHERE u.merchant_id = NEW.merchant_id) THEN
        RAISE EXCEPTION 'no entry for %', NEW USING ERRCODE = 'integrity_constraint_violation';
      END IF;
      RETURN NEW;
    END $$;
    CREATE TRIGGER refuse_entry BEFORE INSERT ON audit_entry FOR EACH ROW EXECUTE FUNCTION refuse_entry()`)
})
afterAll(async () => {
  await service.close()
  await mail.close()
})

interface EntryRow {
  actor: string
  operation: string
  target: string
  address: string
  requestId: string
  channel: string
  before: object | null
  after: object | null
}

async function entriesOf({ merchantId }: Pick<AuditedShop, 'merchantId'>): Promise<EntryRow[]> {
  const { rows } = await service.database.owner.query<EntryRow>(
    `SELECT actor, operation, target, address, request_id AS "requestId", channel, before, after
     FROM audit_entry WHERE merchant_id = $1 ORDER BY id`,
    [merchantId],
  )
  return rows
}

const errorBodies: string[] = []

/** The rows of a shop that operations write, without the columns that change by themselves. */
async function stateOf({ merchantId }: Pick<AuditedShop, 'merchantId'>): Promise<unknown> {
  const tables = [
    'team_member',
    'member_secret',
    'api_key',
    'beneficiary',
    'transaction',
    'payout',
    'batch',
    'batch_recipient',
    'approval_verdict',
    'settings_change',
    'deposit_approval',
    'ledger_entry',
  ]
  tables.push('operator_request', 'merchant_balance', 'webhook_endpoint', 'webhook_delivery', 'audit_entry')
  const moving = `'last_used_at' - 'last_used_from' - 'position' - 'hash' - 'totp_step'`
  const parts = tables.map(
    (name) =>
      `SELECT '${name}' AS name, to_jsonb(t) - ${moving} AS row FROM ${name} t WHERE merchant_id = $1`,
  )
  parts.push(`SELECT 'merchant', to_jsonb(t) FROM merchant t WHERE id = $1`)
  const { rows } = await service.database.owner.query(`${parts.join(' UNION ALL ')} ORDER BY 1, 2`, [
    merchantId,
  ])
  return rows
}

/** Makes every audit entry of a shop fail. */
async function withoutEntries({ merchantId }: AuditedShop, work: () => Promise<void>): Promise<void> {
  const { owner } = service.database
  await owner.query('INSERT INTO unrecorded VALUES ($1)', [merchantId])
  await work()
  await owner.query('DELETE FROM unrecorded WHERE merchant_id = $1', [merchantId])
}

/**
 * Runs a case that is refused, then one that cannot be recorded, and then one that succeeds.
 * @returns the entries that it added to the log, and the expected ones
 */
async function tryOut(operation: string, prepare: Prepare): Promise<{ added: object[]; due: object }> {
  const shop = await fixture.shop()
  const prepared: Case = await prepare(fixture, shop)
  const { ask, actor, target } = prepared
  const viewer = await fixture.member(shop, 'viewer')
  const before = await entriesOf(shop)
  const stood = await stateOf(shop)
  const refused = await fixture.send(prepared.refused ?? { ...ask, token: viewer.token })
  expect(refused).toMatchObject({ data: null })
  errorBodies.push(refused.text)
  expect(await stateOf(shop)).toEqual(stood)
  await service.database.owner.query('TRUNCATE sign_in_wait')
  await withoutEntries(shop, async () => {
    if (prepared.isGoodOnce) return
    const failed = await fixture.send(ask)
    expect(failed).toMatchObject({ data: null })
    errorBodies.push(failed.text)
    expect(await stateOf(shop)).toEqual(stood)
  })

  const done = await fixture.send(ask)
  expect(done).toMatchObject({ data: expect.anything() })
  const added = (await entriesOf(shop)).slice(before.length)
  const named = typeof target === 'function' ? target(done.data) : target
  const due = {
    actor,
    operation,
    target: expect.stringMatching(new RegExp(named.includes(':') ? `^${named}$` : `^${named}:\\d+$`)),
    address: '127.0.0.1',
    requestId: done.requestId,
    channel: ask.field === undefined ? 'rest' : 'graphql',
  }
  return { added, due }
}

const names = Object.keys(schema.getMutationType()?.getFields() ?? {})
const writes = routes.filter(({ method }) => method !== 'GET')

test('every mutation and every writing route has its row', () => {
  expect(Object.keys(mutations).toSorted()).toEqual(names.toSorted())
  const paths = writes.map(({ method, path }) => `${method} ${path}`)
  expect(
    Object.keys(restWrites)
      .filter((row) => !row.startsWith('GET'))
      .toSorted(),
  ).toEqual(paths.toSorted())
})

describe.concurrent('each leaves one entry, none when refused; without its entry it does not happen:', () => {
  const rows = Object.entries(mutations)
  test.each(rows.flatMap(([name, row]) => ('exempt' in row ? [] : [[name, row] as const])))(
    '%s',
    async (name, row) => {
      const { added, due } = await tryOut(name, row(name))
      expect(added).toMatchObject([due])
    },
  )

  test.each(Object.entries(restWrites))('%s', async (name, row) => {
    const [method = '', path = ''] = name.split(' ')
    const route = routes.find((each) => each.path === path.split('?')[0] && each.method === method)
    const operation = operationOf(route?.operation ?? '')
    const { added, due } = await tryOut(operation, row(method, path))
    expect(added).toMatchObject([due])
  })
})

test('the log shows the changed fields, before and after, and no others', async () => {
  const shop = await fixture.shop()
  const { token, merchantId } = shop
  const owner = await fixture.member(shop, 'owner')
  const settings = { business_name: 'Chez Awa', approval_threshold: 5_000, locale: 'fr' }
  await fixture.done({ method: 'PUT', path: '/settings', body: settings, token: owner.token })
  await fixture.done({ method: 'PUT', path: '/settings', body: settings, token })
  const { databaseId: id } = await fixture.done({
    field: 'createBeneficiary',
    variables: { input: { name: 'Awa', account: '70000001', paymentMethod: 'OperatorA' } },
    token,
  })
  await fixture.done({ method: 'PUT', path: `/beneficiaries/${id}`, body: { is_active: false }, token })
  // A request sent twice under one key is one change.
  const headers = { 'Idempotency-Key': 'once' }
  const change = { method: 'PUT', path: `/beneficiaries/${id}`, body: { name: 'Awa D.' }, headers, token }
  for (const once of [change, change]) await fixture.done(once)
  const shown = async (filter: string, given = token) => {
    const entry = '{ at actor operation target address channel before after }'
    const { body } = await service.graphql(`{ auditLog(filter: {${filter}}) { nodes ${entry} } }`, {}, given)
    return body['data']?.auditLog?.nodes ?? body
  }
  const changed = { actor: `member:${owner.memberId}`, operation: 'updateSettings', channel: 'REST' }
  expect(await shown('operation: "updateSettings"')).toMatchObject([
    {
      ...changed,
      target: `merchant:${merchantId}`,
      address: '127.0.0.1',
      before: { approval_threshold: 0 },
      after: { business_name: 'Chez Awa', approval_threshold: 5_000 },
    },
  ])
  expect(await shown('isPayment: true')).toEqual([])
  expect(await shown(`actor: "member:${owner.memberId}"`)).toMatchObject([changed])
  expect(await shown(`target: "beneficiary:${id}"`)).toMatchObject([
    { operation: 'updateBeneficiary', before: { name: 'Awa' }, after: { name: 'Awa D.' } },
    { operation: 'updateBeneficiary', before: { is_active: true }, after: { is_active: false } },
    { operation: 'createBeneficiary', before: null, after: { account: '+22370000001', is_active: true } },
  ])
  expect(await shown('to: "2020-01-01T00:00:00Z"')).toEqual([])
  expect(await shown('from: "2020-01-01T00:00:00Z"')).toHaveLength(6)
  // A date at the end is its whole day.
  const all = await shown('')
  const [newest, oldest] = [all.at(0), all.at(-1)].map(({ at }: { at: string }) => at.slice(0, 10))
  expect(await shown(`from: "${oldest}", to: "${newest}"`)).toHaveLength(6)
  // The job chains the entries by itself, at most 5 s after the change.
  await eventually(async () => expect(await chainOf(shop)).toMatchObject({ upTo: 6, isIntact: true }))
  const viewer = await fixture.member(shop, 'viewer')
  expect(await shown('', viewer.token)).toMatchObject({ errors: [{ extensions: { code: 'FORBIDDEN' } }] })
})

test('changes by the command line of the platform are recorded too', async () => {
  const shop = await fixture.shop()
  const merchant = String(shop.merchantId)
  const command = (name: string, flags: object) => commands[name]?.(service.app.services, flags)
  const before = await entriesOf(shop)
  await command('merchant fund', { id: merchant, amount: '5000' })
  await command('member invite', { merchant, email: 'owner@shop.test', name: 'Awa', role: 'owner' })
  await fixture.done({
    method: 'POST',
    path: '/payouts',
    body: { amount: 1_000, destination_phone: '70000000', payment_method: 'OperatorA', scheduled_at: later },
    token: shop.token,
  })
  for (const name of [
    'merchant deactivate',
    'merchant deactivate',
    'merchant cancel-payouts',
    'merchant activate',
  ])
    await command(name, { id: merchant })
  const added = (await entriesOf(shop)).slice(before.length)
  const platform = { actor: 'platform', channel: 'terminal', address: null, requestId: null }
  expect(before[0]).toMatchObject({ ...platform, operation: 'merchant create' })
  expect(added.filter(({ operation }) => operation !== 'createPayout')).toMatchObject([
    { ...platform, operation: 'merchant fund', after: { funded: 5_000 } },
    { ...platform, operation: 'member invite', after: { email: 'owner@shop.test', role: 'owner' } },
    { ...platform, operation: 'merchant deactivate', after: { status: 'inactive' } },
    { ...platform, operation: 'merchant cancel-payouts', after: { payouts_cancelled: 1 } },
    {
      ...platform,
      operation: 'merchant activate',
      before: { status: 'inactive' },
      after: { status: 'active' },
    },
  ])
  await chainAll()
  expect(await command('audit-log verify', { merchant })).toMatchObject({
    answer: { intact: true, entries: before.length + 6, fault: null },
    failed: false,
  })
})

const later = new Date(Date.now() + 86_400_000).toISOString()

/** Chains all entries, as several processes at once. */
async function chainAll(): Promise<void> {
  const { pool } = service.database.database
  const { auditKey } = service.app.services.access.master
  await eventually(async () => {
    await Promise.all([1, 2, 3].map(() => chainAuditLog(pool, auditKey)))
    const { rowCount } = await service.database.owner.query('SELECT FROM audit_unchained')
    expect(rowCount).toBe(0)
  })
}

const chainOf = async ({ token }: Pick<AuditedShop, 'token'>) => {
  const fields = 'isIntact isComplete upTo fault { sequence databaseId problem }'
  const { body } = await service.graphql(`{ verifyAuditLog { ${fields} } }`, {}, token)
  return body['data'].verifyAuditLog
}

test('every log is one chain; the database itself refuses every change of it', async () => {
  await chainAll()
  const { owner, database } = service.database
  const { rows } = await owner.query<{ merchantId: number; position: bigint; n: bigint }>(
    `SELECT merchant_id AS "merchantId", h.position, count(*) AS n
     FROM audit_entry JOIN audit_head h USING (merchant_id) GROUP BY merchant_id, h.position`,
  )
  expect(rows.length).toBeGreaterThan(40)
  const { auditKey } = service.app.services.access.master
  for (const { merchantId, position, n } of rows) {
    const verdict = await verifyAuditLog(database.pool, auditKey, merchantId, { after: 0n, most: 5 })
    expect(verdict).toMatchObject({ fault: null, isComplete: n < 5n })
    const rest = await verifyAuditLog(database.pool, auditKey, merchantId, { after: verdict.upTo, most: 99 })
    expect(rest).toMatchObject({ fault: null, isComplete: true, upTo: position })
    expect(position).toBe(n)
  }
  const attempts = ['UPDATE audit_entry SET actor = $$x$$', 'DELETE FROM audit_entry', 'TRUNCATE audit_entry']
  attempts.push('UPDATE audit_link SET hash = $$x$$', 'DELETE FROM audit_link', 'TRUNCATE audit_link')
  attempts.push('UPDATE audit_head SET position = 0', 'DELETE FROM audit_head')
  for (const attempt of attempts) {
    await expect(owner.query(attempt)).rejects.toMatchObject({ code: '23000' })
    await expect(database.pool.query(attempt)).rejects.toMatchObject({ code: '42501' })
  }
})

test.each(Object.entries(tampering))(
  'tampering with the triggers off is found: %s',
  async (_name, [statement, fault]) => {
    const shop = await fixture.shop()
    const { token, merchantId } = shop
    for (let n = 1; n <= 5; n += 1)
      await fixture.done({ method: 'PUT', path: '/settings', body: { approval_threshold: n }, token })
    await chainAll()
    expect(await chainOf(shop)).toMatchObject({ isIntact: true, isComplete: true, upTo: 7 })
    const client = await borrow(service.database.owner)
    await client.query('BEGIN')
    await client.query('SET LOCAL session_replication_role = replica')
    const touched = await client.query(statement, [merchantId])
    await client.query('COMMIT')
    client.release()
    expect(touched.rowCount).toBeGreaterThan(0)
    expect(await chainOf(shop)).toMatchObject({ isIntact: false, fault })
  },
)

test('no secret appears in a log, in the audit log, in events, errors or other emails', async () => {
  const { owner } = service.database
  const rowsOf = async (table: string) => {
    const { rows } = await owner.query<{ row: string }>(`SELECT t::text AS row FROM ${table} t`)
    return rows.map(({ row }) => row).join('\n')
  }
  const texts = {
    log: logged.lines.join(''),
    audit: await rowsOf('audit_entry'),
    events: await rowsOf('event'),
    errors: errorBodies.join('\n'),
    jobs: (await rowsOf('graphile_worker._private_jobs')) + (await rowsOf('transaction')),
    mails: mail.mails.map(({ data }) => readEmail(data).text.replaceAll(/#\S+/g, '#')).join('\n'),
  }
  expect(fixture.secrets.size).toBeGreaterThan(150)
  for (const [source, text] of Object.entries(texts)) {
    expect(text.length).toBeGreaterThan(100)
    const found = [...fixture.secrets].filter((secret) => isIn(secret, text))
    expect({ source, found }).toEqual({ source, found: [] })
  }
  // The search does find the text that is there.
  expect(texts.mails).toContain('Awa')
})

/** Whether a secret is in a text: plain, as JSON or URL-encoded; six digits must stand alone. */
function isIn(secret: string, text: string): boolean {
  if (/^\d{6}$/.test(secret)) return new RegExp(`\\b${secret}\\b`).test(text)
  return [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)].some((each) =>
    text.includes(each),
  )
}

/** The root field of a REST document has the name of the operation, with a small first letter. */
function operationOf(name: string): string {
  return name.charAt(0).toLowerCase() + name.slice(1)
}
