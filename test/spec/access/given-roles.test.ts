import { describe, expect, test } from 'vitest'
import { borrow } from '../../kit/client.ts'
import { openFixture } from '../../kit/fixture.ts'
import { makeMember } from '../../kit/members.ts'
import { type Role, roleNames } from '../../../src/identity/members/roles.ts'
import { scopes } from '../../../src/identity/callers/scopes.ts'
import type { RestAnswer, TestMerchant } from '../../kit/app.ts'

// No caller gives a scope that the caller lacks (see docs/design/rules.md#people): a token with the scope
// `team` gives and takes away only roles whose scopes the token holds.

const fixture = await openFixture()

const money = ['pay', 'deposit', 'balance', 'payout', 'payment_links', 'beneficiaries', 'bulk_pay'] as const
const roleScopes = { viewer: [], finance: money, admin: scopes, owner: scopes } satisfies Record<Role, object>

interface Pair {
  apiKey: string
  apiSecret: string
}
async function tokenOf({ apiKey, apiSecret }: Pair, named: readonly string[]): Promise<string> {
  const headers = { 'X-API-Key': apiKey, 'X-API-Secret': apiSecret }
  return (await fixture.rest('POST', '/auth', { headers, body: { scopes: named } })).body['data'].token
}
const member = (shop: TestMerchant, role: Role) =>
  makeMember(fixture.app.services.access, shop.merchantId, role)
/** Makes a member who has not joined. @returns the id */
async function invitedAs(shop: TestMerchant, role: Role): Promise<number> {
  const { memberId } = await member(shop, role)
  await fixture.database.owner.query(
    `UPDATE team_member SET status = 'invited', joined_at = NULL WHERE id = $1`,
    [memberId],
  )
  return memberId
}
/** A shop that has an owner: an API key may not name another one. */
async function shopWithOwner(): Promise<TestMerchant> {
  const shop = await fixture.merchant()
  await member(shop, 'owner')
  return shop
}

let people = 0
const newPerson = (role?: Role) => {
  people += 1
  return { name: 'Awa', email: `awa${people}@given.test`, ...(role && { role }) }
}
const invite = (token: string, role?: Role) =>
  fixture.rest('POST', '/team/invite', { token, body: newPerson(role) })
const setRole = (token: string, id: number, role: Role) =>
  fixture.rest('PUT', `/team/${id}/role`, { token, body: { role } })
const remove = (token: string, id: number) => fixture.rest('DELETE', `/team/${id}`, { token })

const refusal = '__typename ... on Refusal { code message } ... on ForbiddenError { requiredScopes }'
async function mutate(token: string, field: string, given: string) {
  const { body } = await fixture.graphql(`mutation { ${field}(${given}) { ${refusal} } }`, {}, token)
  return body['data']?.[field] ?? body['errors'][0]
}
const inviteByGraphql = (token: string, role: Role) => {
  const { name, email } = newPerson()
  return mutate(
    token,
    'inviteMember',
    `input: { name: "${name}", email: "${email}", role: ${role.toUpperCase()} }`,
  )
}
/** The outcome of a request, and the scopes that the refusal names. */
const restOutcome = ({ status, body }: RestAnswer) => [
  status === 403 ? 'refused' : 'done',
  body['required_scopes'] ?? [],
]
const graphqlOutcome = ({ code, requiredScopes }: { code?: string; requiredScopes?: string[] }) => [
  code === 'FORBIDDEN' ? 'refused' : 'done',
  requiredScopes ?? [],
]
const teamOf = async ({ merchantId }: TestMerchant) => {
  const { rows } = await fixture.database.owner.query<{ role: Role; status: string }>(
    'SELECT role, status FROM team_member WHERE merchant_id = $1 ORDER BY id',
    [merchantId],
  )
  return rows
}

describe.each<[who: string, held: readonly string[]]>([
  ['a token with team alone', ['team']],
  ['a token with team and balance', ['team', 'balance']],
  ['a token with team and all of finance', ['team', ...money]],
  ['a token with all scopes but settings', scopes.filter((scope) => scope !== 'settings')],
  ['a token with all scopes', scopes],
])('%s', (_who, held) => {
  test.each(roleNames)(
    'gives, changes, invites again and removes %s only where it holds every scope of the role',
    async (role) => {
      const shop = await shopWithOwner()
      const token = await tokenOf(shop, held)
      // An owner is beyond every token.
      const lacking = role === 'owner' ? [] : roleScopes[role].filter((scope) => !held.includes(scope))
      const wanted = [role === 'owner' || lacking.length > 0 ? 'refused' : 'done', lacking]

      expect(restOutcome(await invite(token, role))).toEqual(wanted)
      expect(graphqlOutcome(await inviteByGraphql(token, role))).toEqual(wanted)
      const low = await member(shop, 'viewer')
      expect(restOutcome(await setRole(token, low.memberId, role))).toEqual(wanted)
      const given = `id: ${low.memberId}, role: ${role.toUpperCase()}`
      expect(graphqlOutcome(await mutate(token, 'changeMemberRole', given))).toEqual(wanted)

      const invited = await invitedAs(shop, role)
      expect(graphqlOutcome(await mutate(token, 'resendInvitation', `id: ${invited}`))).toEqual(wanted)

      const [lowered, first, second] = [
        await member(shop, role),
        await member(shop, role),
        await member(shop, role),
      ]
      expect(restOutcome(await setRole(token, lowered.memberId, 'viewer'))).toEqual(wanted)
      expect(restOutcome(await remove(token, first.memberId))).toEqual(wanted)
      expect(graphqlOutcome(await mutate(token, 'removeMember', `id: ${second.memberId}`))).toEqual(wanted)
    },
  )
})

test('a token with team alone runs the flow of the specification with a viewer, the default', async () => {
  const shop = await shopWithOwner()
  const token = await tokenOf(shop, ['team'])
  const { status, headers } = await invite(token)
  expect(status).toBe(201)
  const id = Number(headers.get('location')?.split('/').at(-1))
  expect((await fixture.rest('GET', `/team/${id}`, { token })).body['data']).toMatchObject({ role: 'viewer' })
  expect(await setRole(token, id, 'viewer')).toMatchObject({ status: 200 })
  expect(await remove(token, id)).toMatchObject({ status: 200 })
  // An unknown member, or a wrong role, is named before the missing scopes.
  expect(await setRole(token, 2_147_483_647, 'admin')).toMatchObject({ status: 404 })
  expect(await setRole(token, id, 'king' as Role)).toMatchObject({ status: 400 })
})

test('the first owner of an account is named by a token with all scopes, and by no other', async () => {
  const shop = await fixture.merchant()
  const missing = scopes.filter((scope) => scope !== 'team')
  const message = expect.stringContaining('the role owner')
  const refused = { status: 403, body: { message, required_scopes: missing } }
  expect(await invite(await tokenOf(shop, ['team']), 'owner')).toMatchObject(refused)
  expect(await invite(await tokenOf(shop, scopes), 'owner')).toMatchObject({ status: 201 })
})

test('a key makes no wider key, and what it makes gives no more than itself', async () => {
  const shop = await shopWithOwner()
  const token = await tokenOf(shop, ['team', 'settings'])
  const make = async (given: string) => {
    const document = `mutation { createApiKey(input: { name: "Till", scopes: ${given} }) { ${refusal}
      ... on IssuedApiKey { apiKey: key apiSecret: secret } } }`
    return (await fixture.graphql(document, {}, token)).body['data'].createApiKey
  }
  expect(await make('[TEAM, PAYOUT]')).toMatchObject({ code: 'FORBIDDEN', requiredScopes: ['payout'] })
  const made = await tokenOf(await make('[TEAM]'), ['team'])
  for (const role of ['finance', 'admin', 'owner'] as const)
    expect(await invite(made, role)).toMatchObject({ status: 403 })
  expect(await teamOf(shop)).toHaveLength(1)
})

test('a session of an admin gives all but owner; of finance or a viewer, nothing', async () => {
  const shop = await shopWithOwner()
  const admin = await member(shop, 'admin')
  for (const role of roleNames) {
    const status = role === 'owner' ? 403 : 201
    expect(await invite(admin.token, role)).toMatchObject({ status })
  }
  for (const role of ['finance', 'viewer'] as const) {
    const { token, memberId } = await member(shop, role)
    expect(await invite(token, 'viewer')).toMatchObject({ status: 403 })
    expect(await setRole(token, memberId, 'admin')).toMatchObject({ status: 403 })
    expect(await mutate(token, 'createApiKey', 'input: { name: "Own", scopes: [BALANCE] }')).toMatchObject({
      extensions: { code: 'FORBIDDEN' },
    })
  }
})

test('a token with team alone lists and ends no session of a member who holds more', async () => {
  const shop = await shopWithOwner()
  const token = await tokenOf(shop, ['team'])
  const [admin, viewer] = [await member(shop, 'admin'), await member(shop, 'viewer')]
  const list = async (id: number) =>
    (await fixture.graphql('query ($id: ID!) { sessions(memberId: $id) { id } }', { id: String(id) }, token))
      .body
  expect(await list(admin.memberId)).toMatchObject({ errors: [{ extensions: { code: 'FORBIDDEN' } }] })
  expect((await list(viewer.memberId))['data'].sessions).toHaveLength(1)
  expect(await mutate(token, 'revokeSession', `id: "${admin.sessionId}"`)).toMatchObject({
    code: 'FORBIDDEN',
  })
  expect(await mutate(token, 'revokeSession', `id: "${viewer.sessionId}"`)).toMatchObject({
    __typename: 'Acknowledgement',
  })
})

test('an admin who is being removed invites no alias: the request waits, and is refused', async () => {
  const shop = await shopWithOwner()
  const [boss, admin] = [await member(shop, 'owner'), await member(shop, 'admin')]
  const other = await member(shop, 'viewer')
  const holder = await borrow(fixture.database.owner)
  await holder.query('BEGIN')
  await holder.query('SELECT pg_advisory_xact_lock_shared(72707373, $1)', [shop.merchantId])
  // The removal waits for the lock that running statements of the shop share.
  const removal = remove(boss.token, admin.memberId)
  await fixture.database.untilWaiting(1)
  const tries = [
    invite(admin.token, 'admin'),
    setRole(admin.token, other.memberId, 'admin'),
    remove(admin.token, other.memberId),
  ]
  await fixture.database.untilWaiting(4)
  await holder.query('COMMIT')
  holder.release()
  expect(await removal).toMatchObject({ status: 200 })
  expect((await Promise.all(tries)).map(({ status }) => status)).toEqual([401, 401, 401])
  expect((await teamOf(shop)).map(({ role, status }) => `${role} ${status}`)).toEqual([
    'owner active',
    'owner active',
    'admin removed',
    'viewer active',
  ])
})
