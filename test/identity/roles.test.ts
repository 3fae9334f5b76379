import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually } from '../kit/eventually.ts'
import { createApiKey, regenerateApiKey, revokeApiKey } from '../../src/identity/keys/api-keys.ts'
import { type Access, authenticate } from '../../src/identity/callers/authenticate.ts'
import { isHigher, type Role, roleNames, roles } from '../../src/identity/members/roles.ts'
import { scopes } from '../../src/identity/callers/scopes.ts'
import { sweepPeople } from '../../src/resources/team/sweep.ts'
import { createTestDatabase, type TestDatabase } from '../kit/database.ts'
import { makeMember, type TestMember } from '../kit/members.ts'
import { makeMerchant, master, openTestAccess } from '../kit/merchants.ts'

let db: TestDatabase
let access: Access
let merchantId: number
beforeAll(async () => {
  db = await createTestDatabase()
  access = await openTestAccess(db.database.pool)
  merchantId = (await makeMerchant(db.database.pool)).merchantId
})
afterAll(async () => {
  access.close()
  await db.drop()
})

const clientAddress = '192.0.2.7'
const enter = ({ token }: TestMember) =>
  authenticate(access, { authorization: `Bearer ${token}`, clientAddress })
const change = (statement: string, { memberId, sessionId }: TestMember) =>
  db.owner.query(statement.replace('$member', String(memberId)).replace('$session', String(sessionId)))
const refused = { code: 'UNAUTHENTICATED' }

test('the owner may do everything, finance no team, keys or webhooks, the viewer changes nothing', () => {
  expect(roleNames).toEqual(['owner', 'admin', 'finance', 'viewer'])
  expect(roles.owner.scopes).toEqual(scopes)
  expect(roles.admin.scopes).toEqual(scopes)
  for (const scope of ['team', 'webhooks', 'settings']) expect(roles.finance.scopes).not.toContain(scope)
  expect(roles.viewer.scopes).toEqual(roles.finance.scopes)
  expect(roleNames.map((role) => roles[role].readsOnly)).toEqual([false, false, false, true])
  expect(roles.admin.manages).not.toContain('owner')
  expect([isHigher('owner', 'admin'), isHigher('viewer', 'finance'), isHigher('admin', 'admin')]).toEqual([
    true,
    false,
    false,
  ])
})

test.each(roleNames)('a session of a member who is %s has the scopes of the role', async (role: Role) => {
  const member = await makeMember(access, merchantId, role)
  const actor = await enter(member)
  expect(actor).toMatchObject({ merchantId, memberId: member.memberId, role, readsOnly: role === 'viewer' })
  expect([...(actor?.scopes ?? [])]).toEqual(roles[role].scopes)
})

test.each([
  ['another role', `UPDATE team_member SET role = 'viewer' WHERE id = $member`],
  ['a higher role', `UPDATE team_member SET role = 'owner' WHERE id = $member`],
  ['removal', `UPDATE team_member SET status = 'removed', removed_at = now() WHERE id = $member`],
  ['12 hours', `UPDATE session SET expires_at = now() - interval '1 second' WHERE id = $session`],
  [
    'an hour without a request',
    `UPDATE session SET last_used_at = now() - interval '61 min' WHERE id = $session`,
  ],
])('%s ends the sessions of a member', async (_what, statement) => {
  const member = await makeMember(access, merchantId, 'finance')
  const colleague = await makeMember(access, merchantId, 'finance')
  await Promise.all([enter(member), enter(colleague)])
  await change(statement, member)
  access.credentials.forget(member.sessionId)
  await expect(enter(member)).rejects.toMatchObject(refused)
  expect(await enter(colleague)).toMatchObject({ role: 'finance' })
})

test('the database lets the same roles approve as the table', async () => {
  const { rows } = await db.owner.query<{ role: Role; approves: boolean }>(
    'SELECT role, role_approves(role) AS approves FROM unnest(enum_range(NULL::member_role)) AS role',
  )
  expect(rows).toEqual(roleNames.map((role) => ({ role, approves: roles[role].approves })))
})

test('a removed member stays removed; the last owner stays, also when two leave at once', async () => {
  const shop = await makeMerchant(db.database.pool)
  const owners = [
    await makeMember(access, shop.merchantId, 'owner'),
    await makeMember(access, shop.merchantId, 'owner'),
  ]
  const left = await Promise.allSettled([
    change(`UPDATE team_member SET role = 'viewer' WHERE id = $member`, owners[0] as TestMember),
    change(
      `UPDATE team_member SET status = 'removed', removed_at = now() WHERE id = $member`,
      owners[1] as TestMember,
    ),
  ])
  expect(left.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
  expect(left.find(({ status }) => status === 'rejected')).toMatchObject({
    reason: { constraint: 'team_member_last_owner' },
  })
  const member = await makeMember(access, merchantId, 'admin')
  await change(`UPDATE team_member SET status = 'removed', removed_at = now() WHERE id = $member`, member)
  const back = change(
    `UPDATE team_member SET status = 'active', removed_at = NULL WHERE id = $member`,
    member,
  )
  await expect(back).rejects.toMatchObject({ code: '23000' })
})

test('the use of a credential is recorded with its address, once a minute', async () => {
  const member = await makeMember(access, merchantId, 'admin')
  const used = async () => {
    const { rows } = await db.owner.query<{ at: Date | null; address: string | null }>(
      'SELECT last_used_at AS at, last_used_from AS address FROM session WHERE id = $1',
      [member.sessionId],
    )
    return rows[0]
  }
  await enter(member)
  await eventually(async () => expect(await used()).toEqual({ at: expect.any(Date), address: clientAddress }))
  const first = await used()
  await authenticate(access, { authorization: `Bearer ${member.token}`, clientAddress: '192.0.2.8' })
  await db.database.pool.query('SELECT')
  expect(await used()).toEqual(first)
})

test('a session is no key: it is neither regenerated nor revoked as one', async () => {
  const member = await makeMember(access, merchantId, 'admin')
  const named = { merchantId, apiKeyId: member.sessionId }
  await expect(regenerateApiKey(db.database.pool, master, named)).rejects.toMatchObject({ code: 'NOT_FOUND' })
  await expect(revokeApiKey(db.database.pool, named)).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

test('a session and a key never have the same id: a token names either by the id alone', async () => {
  const { rows } = await db.owner.query<{ sequence: string }>(
    `SELECT DISTINCT column_default AS sequence FROM information_schema.columns
     WHERE table_schema = 'public' AND table_name IN ('api_key', 'session') AND column_name = 'id'`,
  )
  expect(rows).toEqual([{ sequence: "nextval('api_key_id_seq'::regclass)" }])
})

test('an API key after its last day is dead', async () => {
  const input = { merchantId, name: 'Till', scopes }
  const { apiKeyId } = await createApiKey(db.database.pool, master, input)
  const grant = { merchantId, apiKeyId, apiKeyVersion: 1, scopes, hours: 1 }
  const { token } = await access.tokens.issueToken(grant)
  await db.owner.query(`UPDATE api_key SET expires_at = now() - interval '1 second' WHERE id = $1`, [
    apiKeyId,
  ])
  const entered = authenticate(access, { authorization: `Bearer ${token}`, clientAddress })
  await expect(entered).rejects.toMatchObject(refused)
})

test('sessions are deleted a month after their end, emails after three', async () => {
  const members = [
    await makeMember(access, merchantId, 'admin'),
    await makeMember(access, merchantId, 'admin'),
  ]
  const [old, young] = members as [TestMember, TestMember]
  await change(`UPDATE session SET revoked_at = now() - interval '31 days' WHERE id = $session`, old)
  await change(`UPDATE session SET revoked_at = now() - interval '29 days' WHERE id = $session`, young)
  await db.owner.query(
    `INSERT INTO mail (id, merchant_id, template, created_at)
     SELECT gen_random_uuid(), $1, 'invitation', now() - days * interval '1 day'
     FROM unnest(ARRAY[89, 91]) AS days`,
    [merchantId],
  )
  await db.owner.query(
    `INSERT INTO sign_in_wait SELECT 'account ' || hours, 1, now() - hours * interval '1 hour'
     FROM unnest(ARRAY[23, 25]) AS hours`,
  )
  expect(await sweepPeople(db.database.pool)).toBe(false)
  const { rows } = await db.owner.query(
    `SELECT (SELECT array_agg(id) FROM session WHERE id IN ($1, $2)) AS sessions,
       (SELECT count(*)::int FROM mail) AS mails, (SELECT array_agg(name) FROM sign_in_wait) AS waits`,
    [old.sessionId, young.sessionId],
  )
  expect(rows).toEqual([{ sessions: [young.sessionId], mails: 1, waits: ['account 23'] }])
})
