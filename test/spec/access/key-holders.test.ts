import { expect, test } from 'vitest'
import { borrow } from '../../kit/client.ts'
import { eventually } from '../../kit/eventually.ts'
import { type Role, roles } from '../../../src/identity/members/roles.ts'
import { makeMember, type TestMember } from '../../kit/members.ts'
import type { TestMerchant } from '../../kit/app.ts'
import { openFixture } from '../../kit/fixture.ts'

// API keys that were shown to a member end with the member's rights (see
// docs/design/rules.md#sign-in-and-tokens).

const fixture = await openFixture()
const { owner } = fixture.database

interface Pair {
  key: string
  secret: string
  apiKey: { databaseId: number; issuedTo: { databaseId: number; status: string } | null }
}

const person = ({ merchantId }: TestMerchant, role: Role) =>
  makeMember(fixture.app.services.access, merchantId, role)

async function field(token: string, document: string, variables: object = {}) {
  const { body } = await fixture.graphql(document, variables, token)
  return body['data']?.[Object.keys(body['data'])[0] ?? ''] ?? body['errors']?.[0]
}
const makeKey = (token: string, scopes: readonly string[]): Promise<Pair> =>
  field(
    token,
    `mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { ... on IssuedApiKey {
      key secret apiKey { databaseId issuedTo { databaseId status } } } ... on Refusal { code message } } }`,
    { input: { name: 'Till', scopes } },
  )
const keyOf = async (token: string, id: number) => {
  const document = '{ apiKeys { nodes { databaseId isActive issuedTo { databaseId status } } } }'
  const { nodes } = await field(token, document)
  return nodes.find(({ databaseId }: { databaseId: number }) => databaseId === id)
}
const auth = ({ key, secret }: Pair, scopes: readonly string[]) =>
  fixture.rest('POST', '/auth', { headers: { 'X-API-Key': key, 'X-API-Secret': secret }, body: { scopes } })
const tokenOf = async (pair: Pair, scopes: readonly string[]) =>
  (await auth(pair, scopes)).body['data'].token as string
const remove = ({ memberId }: TestMember, token: string, body?: object) =>
  fixture.rest('DELETE', `/team/${memberId}`, { token, ...(body && { body }) })
const setRole = ({ memberId }: TestMember, role: Role, token: string) =>
  fixture.rest('PUT', `/team/${memberId}/role`, { token, body: { role } })

async function alertsOf({ merchantId }: TestMerchant) {
  const { rows } = await owner.query<{ data: Record<string, unknown> }>(
    `SELECT data FROM event WHERE merchant_id = $1 AND type = 'security_alert' ORDER BY id`,
    [merchantId],
  )
  return rows.map(({ data }) => data)
}
async function entriesOf({ merchantId }: TestMerchant, keyId: number) {
  const { rows } = await owner.query<{ actor: string; operation: string; before: object; after: object }>(
    `SELECT actor, operation, before, after FROM audit_entry
     WHERE merchant_id = $1 AND target = $2 ORDER BY id`,
    [merchantId, `api_key:${keyId}`],
  )
  return rows
}

test('a removed admin pays nothing and invites no person with the keys that they were shown', async () => {
  const shop = await fixture.merchant()
  await fixture.fund(shop, 1_000_000)
  const [boss, admin] = [await person(shop, 'owner'), await person(shop, 'admin')]
  const pair = await makeKey(admin.token, ['DEPOSIT', 'TEAM', 'SETTINGS'])
  const keyId = pair.apiKey.databaseId
  expect(pair.apiKey.issuedTo).toEqual({ databaseId: admin.memberId, status: 'ACTIVE' })
  const token = await tokenOf(pair, ['deposit', 'team', 'settings'])
  // A key that this key makes is shown to the same person.
  const second = await makeKey(token, ['DEPOSIT'])
  expect(second.apiKey.issuedTo?.databaseId).toBe(admin.memberId)
  const other = await makeKey(boss.token, ['DEPOSIT'])

  expect(await remove(admin, boss.token)).toMatchObject({ status: 200 })
  expect(await fixture.deposit({ token }, { amount: 500_000 })).toMatchObject({ status: 401 })
  const invitation = { name: 'Me', email: `me${admin.memberId}@shop.test`, role: 'admin' }
  expect(await fixture.rest('POST', '/team/invite', { token, body: invitation })).toMatchObject({
    status: 401,
  })
  expect(await auth(pair, ['deposit'])).toMatchObject({ status: 401 })
  expect(await auth(second, ['deposit'])).toMatchObject({ status: 401 })
  expect(await auth(other, ['deposit'])).toMatchObject({ status: 200 })

  expect(await keyOf(boss.token, keyId)).toEqual({
    databaseId: keyId,
    isActive: false,
    issuedTo: { databaseId: admin.memberId, status: 'REMOVED' },
  })
  expect((await alertsOf(shop)).at(-1)).toMatchObject({
    kind: 'keys_revoked',
    team_member_id: admin.memberId,
    api_key_ids: [keyId, second.apiKey.databaseId],
  })
  expect((await entriesOf(shop, keyId)).at(-1)).toMatchObject({
    actor: `member:${boss.memberId}`,
    operation: 'removeMember',
    before: { revoked_at: null },
    after: { revoked_at: expect.any(String) },
  })
})

test('a demotion revokes the keys that grant more than the new role, and no others', async () => {
  const shop = await fixture.merchant()
  const [boss, admin] = [await person(shop, 'owner'), await person(shop, 'admin')]
  const money = await makeKey(admin.token, ['PAY', 'BALANCE'])
  const hooks = await makeKey(admin.token, ['PAY', 'WEBHOOKS'])
  expect(await setRole(admin, 'finance', boss.token)).toMatchObject({ status: 200 })
  expect(await auth(money, ['pay'])).toMatchObject({ status: 200 })
  expect(await auth(hooks, ['pay'])).toMatchObject({ status: 401 })
  const hooksId = hooks.apiKey.databaseId
  expect((await alertsOf(shop)).at(-1)).toMatchObject({ kind: 'keys_revoked', api_key_ids: [hooksId] })
  expect((await entriesOf(shop, hooksId)).at(-1)).toMatchObject({ operation: 'changeMemberRole' })
  // A viewer changes nothing, and neither does a key of theirs.
  await setRole(admin, 'viewer', boss.token)
  expect(await auth(money, ['pay'])).toMatchObject({ status: 401 })
  expect(await alertsOf(shop)).toHaveLength(2)
  // A higher role revives no key, and a demotion without keys lists none.
  await setRole(admin, 'admin', boss.token)
  await setRole(admin, 'finance', boss.token)
  expect((await alertsOf(shop)).filter(({ kind }) => kind === 'keys_revoked')).toHaveLength(2)
})

test('the database allows keys of each role the same scopes as the table of roles', async () => {
  const { rows } = await owner.query<{ role: Role; scopes: string[] }>(
    'SELECT role, key_scopes_of(role) AS scopes FROM unnest(enum_range(NULL::member_role)) AS role',
  )
  const expected = Object.entries(roles).map(([role, { scopes, readsOnly }]) => ({
    role,
    scopes: readsOnly ? [] : scopes,
  }))
  expect(rows).toEqual(expected)
})

test('a named key passes to the person who removes its holder, and the alert says who knows it', async () => {
  const shop = await fixture.merchant()
  const [boss, admin] = [await person(shop, 'owner'), await person(shop, 'admin')]
  const [till, other] = [await makeKey(admin.token, ['PAY']), await makeKey(admin.token, ['PAY'])]
  const [tillId, otherId] = [till.apiKey.databaseId, other.apiKey.databaseId]
  expect(await remove(admin, boss.token, { keep_keys: [tillId, tillId] })).toMatchObject({ status: 200 })
  expect(await auth(till, ['pay'])).toMatchObject({ status: 200 })
  expect(await auth(other, ['pay'])).toMatchObject({ status: 401 })
  const holder = { databaseId: boss.memberId, status: 'ACTIVE' }
  expect(await keyOf(boss.token, tillId)).toMatchObject({ isActive: true, issuedTo: holder })
  const removal = (await entriesOf(shop, tillId)).find(({ operation }) => operation === 'removeMember')
  expect(removal).toMatchObject({
    actor: `member:${boss.memberId}`,
    before: { issued_to_id: admin.memberId },
    after: { issued_to_id: boss.memberId },
  })
  expect((await alertsOf(shop)).slice(-2)).toMatchObject([
    {
      kind: 'keys_kept',
      team_member_id: boss.memberId,
      api_key_ids: [tillId],
      message: expect.stringContaining('regenerate'),
      ip: '127.0.0.1',
    },
    { kind: 'keys_revoked', api_key_ids: [otherId] },
  ])
  // The key ends with the next member who leaves.
  const last = await person(shop, 'owner')
  await remove(boss, last.token)
  expect(await auth(till, ['pay'])).toMatchObject({ status: 401 })
})

test('over GraphQL too; a key that was never theirs is refused by name, and nothing is changed', async () => {
  const shop = await fixture.merchant()
  const [boss, admin] = [await person(shop, 'owner'), await person(shop, 'admin')]
  const [till, own] = [await makeKey(admin.token, ['PAY']), await makeKey(boss.token, ['PAY'])]
  const document = `mutation ($id: ID!, $keep: [ID!]) { removeMember(id: $id, keepKeys: $keep) { __typename
    ... on TeamMember { status } ... on InvalidInputError { problems { field message } }
    ... on Refusal { code } } }`
  const removal = (keep: unknown, token = boss.token) =>
    field(token, document, { id: String(admin.memberId), keep })
  for (const wrong of [own.apiKey.databaseId, 2_147_483_647, 'rubbish']) {
    expect(await removal([till.apiKey.databaseId, wrong])).toMatchObject({
      problems: [{ field: 'keepKeys[1]', message: expect.stringContaining('shown to') }],
    })
  }
  const named = await remove(admin, boss.token, { keep_keys: [own.apiKey.databaseId] })
  expect(named).toMatchObject({ status: 400, body: { errors: [{ field: 'keep_keys[0]' }] } })
  const misfit = await remove(admin, boss.token, { keep_keys: 'all' })
  expect(misfit).toMatchObject({ status: 400, body: { errors: [{ field: 'keep_keys' }] } })
  expect(await auth(till, ['pay'])).toMatchObject({ status: 200 })
  expect(await alertsOf(shop)).toEqual([])
  expect(await removal([till.apiKey.databaseId])).toMatchObject({ status: 'REMOVED' })
  expect(await auth(till, ['pay'])).toMatchObject({ status: 200 })
})

test('keys pass to another member only: not to the removed one, nor to a key without a holder', async () => {
  const shop = await fixture.merchant()
  const [boss, admin] = [await person(shop, 'owner'), await person(shop, 'admin')]
  await person(shop, 'owner')
  const till = await makeKey(admin.token, ['PAY', 'TEAM'])
  const keep = { keep_keys: [till.apiKey.databaseId] }
  for (const token of [shop.token, admin.token, await tokenOf(till, ['team'])]) {
    expect(await remove(admin, token, keep)).toMatchObject({ status: 403, body: { success: false } })
  }
  // A removal by an API key passes the kept keys to the person who was shown that API key.
  const bosses = await makeKey(
    boss.token,
    roles.owner.scopes.map((scope) => scope.toUpperCase()),
  )
  expect(await remove(admin, await tokenOf(bosses, roles.owner.scopes), keep)).toMatchObject({ status: 200 })
  const { issuedTo } = await keyOf(boss.token, till.apiKey.databaseId)
  expect(issuedTo.databaseId).toBe(boss.memberId)
})

test('a key that is made while its maker is removed does not outlive the removal', async () => {
  const shop = await fixture.merchant()
  const [boss, admin] = [await person(shop, 'owner'), await person(shop, 'admin')]
  // Both wait for the lock of changes of access, the new key first.
  const holder = await borrow(owner)
  await holder.query('BEGIN')
  await holder.query('SELECT pg_advisory_xact_lock(72707373, $1)', [shop.merchantId])
  const waiting = async () => {
    const { rows } = await owner.query<{ count: number }>(
      `SELECT count(*)::int AS count FROM pg_locks l JOIN pg_database d ON d.oid = l.database
       WHERE d.datname = current_database() AND l.locktype = 'advisory' AND NOT l.granted
         AND l.classid = 72707373`,
    )
    return rows[0]?.count
  }
  const made = makeKey(admin.token, ['PAY'])
  await eventually(async () => expect(await waiting()).toBe(1))
  const removed = remove(admin, boss.token)
  await eventually(async () => expect(await waiting()).toBe(2))
  await holder.query('COMMIT')
  holder.release()
  const pair = await made
  expect(await removed).toMatchObject({ status: 200 })
  expect(await auth(pair, ['pay'])).toMatchObject({ status: 401 })
})
