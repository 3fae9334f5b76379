import { expect, test } from 'vitest'
import { passwordBounds } from '../../../src/identity/members/passwords.ts'
import { limits } from '../../../src/shared/limits.ts'
import { inviteAsPlatform } from '../../../src/resources/team/invite.ts'
import { makeMember } from '../../kit/members.ts'
import { receive } from '../../kit/webhooks/endpoint-queue.ts'
import type { TestMerchant } from '../../kit/app.ts'
import { eventually } from '../../kit/eventually.ts'
import { openFixture } from '../../kit/fixture.ts'
import { useBounds } from '../../kit/use-bounds.ts'

// Every kind of `security_alert` (see docs/design/events.md#alerts), each caused by the real action and read
// from the merchant's webhook. The trusted proxy names the address of each caller.

// `passwords.test.ts` tests the cost of a password hash.
useBounds(passwordBounds, { memoryKib: 64, passes: 1 })

const fixture = await openFixture({ TRUSTED_PROXIES: '127.0.0.1', WEBHOOK_DISABLE_AFTER: '1' })
const { owner } = fixture.database
const { access } = fixture.app.services
const password = 'le soleil de Bamako'
const home = { 'X-Forwarded-For': '192.0.2.7' }
const elsewhere = { 'X-Forwarded-For': '203.0.113.9' }

async function alertsOf({ merchantId }: TestMerchant): Promise<Record<string, unknown>[]> {
  const { rows } = await owner.query<{ data: Record<string, unknown> }>(
    `SELECT data FROM event WHERE merchant_id = $1 AND type = 'security_alert' ORDER BY id`,
    [merchantId],
  )
  return rows.map(({ data }) => data)
}
/** Waits until the shop has exactly these alerts. */
async function expectAlerts(shop: TestMerchant, alerts: object[]): Promise<void> {
  await eventually(async () => expect(await alertsOf(shop)).toMatchObject(alerts))
}

async function memberOf({ merchantId }: TestMerchant, role: Parameters<typeof makeMember>[2]) {
  const member = await makeMember(access, merchantId, role)
  const { rows } = await owner.query<{ email: string }>(
    `UPDATE member_secret s SET password_hash = $2 FROM team_member t
     WHERE t.id = s.member_id AND t.id = $1 RETURNING t.email`,
    [member.memberId, await access.passwords.hash(password)],
  )
  return { ...member, email: rows[0]?.email ?? '' }
}

/** A public mutation, from an address. @returns the name of its answer's type */
async function ask(field: string, type: string, input: object, headers: object): Promise<string> {
  const response = await fetch(`${fixture.url}/graphql`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify({
      query: `mutation ($input: ${type}!) { ${field}(input: $input) { as: __typename } }`,
      variables: { input },
    }),
  })
  const { data } = (await response.json()) as { data: Record<string, { as: string }> }
  return data[field]?.as ?? 'nothing'
}
const signIn = (email: string, given: string, headers: object) =>
  ask('signIn', 'SignInInput', { email, password: given }, headers)

/** Lets only `home` in. */
async function closeTo(shop: TestMerchant): Promise<void> {
  const body = { ip_whitelist: ['192.0.2.7'] }
  const answer = await fixture.rest('PUT', '/settings', { token: shop.token, body, headers: home })
  expect(answer.status).toBe(200)
}

test('whitelist_changed and ip_blocked: a sign-in from elsewhere raises one, as a token does', async () => {
  const shop = await fixture.merchant()
  const member = await memberOf(shop, 'finance')
  await closeTo(shop)
  for (let n = 0; n < 2; n += 1) {
    expect(await signIn(member.email, password, elsewhere)).toBe('AddressNotAllowedError')
  }
  const alerts = [
    { kind: 'whitelist_changed', ip: '192.0.2.7' },
    { kind: 'ip_blocked', ip: '203.0.113.9', message: expect.stringContaining('203.0.113.9') },
  ]
  await expectAlerts(shop, alerts)
  // A wrong password raises no alert, and a blocked caller need not wait.
  expect(await signIn(member.email, 'wrong', { 'X-Forwarded-For': '203.0.113.10' })).toBe(
    'CredentialsRejectedError',
  )
  await owner.query('TRUNCATE sign_in_wait')
  expect(await signIn(member.email, password, home)).toBe('SignedIn')
  const balance = { token: shop.token, headers: { 'X-Forwarded-For': '203.0.113.11' } }
  // The whitelist takes effect within a second.
  await eventually(async () =>
    expect(await fixture.rest('GET', '/balance', balance)).toMatchObject({ status: 403 }),
  )
  await expectAlerts(shop, [...alerts, { kind: 'ip_blocked', ip: '203.0.113.11' }])
})

test('ip_blocked: an invitation that is accepted from elsewhere raises one, and stays valid', async () => {
  const shop = await fixture.merchant()
  await closeTo(shop)
  const invited = { name: 'Awa', email: 'awa@shop.test', role: 'owner' } as const
  const { token } = await inviteAsPlatform(fixture.app.services, shop.merchantId, invited)
  const accept = (headers: object) =>
    ask('acceptInvitation', 'AcceptInvitationInput', { token, password }, headers)
  expect(await accept(elsewhere)).toBe('AddressNotAllowedError')
  await expectAlerts(shop, [{ kind: 'whitelist_changed' }, { kind: 'ip_blocked', ip: '203.0.113.9' }])
  expect(await accept(home)).toBe('SignedIn')
})

test('auth_failures: the tenth failure in a row', async () => {
  const shop = await fixture.merchant()
  const { email, memberId } = await memberOf(shop, 'viewer')
  for (let n = 1; n <= limits.signInAlertFailures; n += 1) {
    expect(await alertsOf(shop)).toEqual([])
    expect(await signIn(email, 'wrong', elsewhere)).toBe('CredentialsRejectedError')
    await owner.query('UPDATE sign_in_wait SET until = now()')
  }
  await expectAlerts(shop, [{ kind: 'auth_failures', team_member_id: memberId, ip: '203.0.113.9' }])
})

test('key_regenerated', async () => {
  const shop = await fixture.merchant()
  const { body } = await fixture.graphql('{ apiKeys { nodes { id } } }', {}, shop.token)
  const [{ id }] = body['data'].apiKeys.nodes
  const document = 'mutation ($id: ID!) { regenerateApiKey(id: $id) { __typename } }'
  expect(await fixture.graphql(document, { id }, shop.token)).toMatchObject({ status: 200 })
  await expectAlerts(shop, [{ kind: 'key_regenerated', ip: '127.0.0.1' }])
})

test('role_raised reaches a webhook; an endpoint that fails is reported by webhook_disabled', async () => {
  const shop = await fixture.merchant()
  const receiver = await receive(() => 500)
  const wanted = { url: receiver.url, events: ['security_alert'] }
  const { body } = await fixture.rest('POST', '/webhooks', { token: shop.token, body: wanted })
  const viewer = await memberOf(shop, 'viewer')
  await fixture.rest('PUT', `/team/${viewer.memberId}/role`, { token: shop.token, body: { role: 'finance' } })
  const raised = { kind: 'role_raised', team_member_id: viewer.memberId, ip: '127.0.0.1' }
  await expectAlerts(shop, [
    raised,
    { kind: 'webhook_disabled', webhook_id: body['data'].id, url: receiver.url },
  ])
  expect(receiver.calls).toMatchObject([{ event: 'security_alert' }])
  // A lower role is no alert.
  await fixture.rest('PUT', `/team/${viewer.memberId}/role`, { token: shop.token, body: { role: 'viewer' } })
  expect(await alertsOf(shop)).toHaveLength(2)
})

test('a member gets an email about a sign-in from a new address, at most three an hour', async () => {
  const shop = await fixture.merchant('Chez Awa')
  const { email } = await memberOf(shop, 'finance')
  const letters = async () => {
    const { rows } = await owner.query(
      `SELECT FROM mail WHERE merchant_id = $1 AND template = 'new-address'`,
      [shop.merchantId],
    )
    return rows.length
  }
  const counts = []
  for (const from of [
    '192.0.2.1',
    '192.0.2.1',
    '2001:db8:1:1::1',
    '2001:db8:1:1:ffff::9',
    '192.0.2.1',
    '192.0.2.2',
    '192.0.2.3',
  ]) {
    expect(await signIn(email, password, { 'X-Forwarded-For': from })).toBe('SignedIn')
    counts.push(await letters())
  }
  expect(counts).toEqual([1, 1, 2, 2, 2, 3, 3])
  const read = async () => (await fetch(`${fixture.url}/mail`)).text()
  await eventually(async () =>
    expect(await read()).toMatch(/192\.0\.2\.2, \d+ \S+ \d{4} à \d\d:\d\d \(UTC\)/),
  )
  expect(await read()).toContain('Nouvelle connexion : Chez Awa')
})
