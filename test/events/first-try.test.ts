import { expect, test } from 'vitest'
import { announcerBounds } from '../../src/events/announcer.ts'
import { adminHere } from '../kit/admin.ts'
import type { TestMerchant } from '../kit/app.ts'
import { approvalsOn } from '../kit/approvals.ts'
import { eventually } from '../kit/eventually.ts'
import { customer, hour, openFixture } from '../kit/fixture.ts'
import { makeMember, nameHolder } from '../kit/members.ts'
import { payoutsOn } from '../kit/payouts.ts'
import { useBounds } from '../kit/use-bounds.ts'
import { addEndpoint, receive } from '../kit/webhooks/endpoint-queue.ts'

// The first try of each delivery begins with the commit of its event, for every verb. No
// announcer polls in this file, so a delivery that the commit did not begin never comes.
useBounds(announcerBounds, { pollMs: hour })

const fixture = await openFixture({ TRUSTED_PROXIES: '127.0.0.1', WEBHOOK_DISABLE_AFTER: '1' })
const { owner, url } = fixture.database
const { access, config } = fixture.app.services
const { approve, team, waiting } = approvalsOn(fixture)
const { payOut, ahead } = payoutsOn(fixture)

interface Told {
  what: string
  told: boolean
}

/** Reads the events of a merchant: the kind of an alert or the type, and whether a delivery was made. */
async function toldOf({ merchantId }: Pick<TestMerchant, 'merchantId'>): Promise<Told[]> {
  const { rows } = await owner.query<Told>(
    `SELECT coalesce(e.data->>'kind', e.type) AS what,
       EXISTS (SELECT FROM webhook_delivery d
         WHERE d.merchant_id = e.merchant_id AND d.position = e.position) AS told
     FROM event e WHERE e.merchant_id = $1 ORDER BY e.position`,
    [merchantId],
  )
  return rows
}

/** Gives a merchant an endpoint for every type; the endpoint is off, so that its deliveries wait. */
async function watch({ merchantId }: Pick<TestMerchant, 'merchantId'>): Promise<void> {
  const id = await addEndpoint(fixture.database, access.master, { merchantId, url: 'https://shop.example/' })
  await owner.query('UPDATE webhook_endpoint SET is_active = false WHERE id = $1', [id])
}

/** Waits until each event of a merchant has its delivery, the event `what` among them. */
const becomesTold = (shop: Pick<TestMerchant, 'merchantId'>, what: string) =>
  eventually(async () => {
    const told = await toldOf(shop)
    expect(told).toContainEqual({ what, told: true })
    expect(told).not.toContainEqual(expect.objectContaining({ told: false }))
  })

/** Prepares an act, whose last event is the one to be told. */
type Prepare = (shop: TestMerchant) => Promise<() => Promise<unknown>>

const makeKey = `mutation { createApiKey(input: { name: "Till", scopes: [BALANCE] }) { __typename } }`
const makeAnew = 'mutation ($id: ID!) { regenerateApiKey(id: $id) { __typename } }'

/** Raises the role of a member. */
const raise: Prepare = async ({ merchantId, token }) => {
  const { memberId } = await makeMember(access, merchantId, 'viewer')
  return () => fixture.rest('PUT', `/team/${memberId}/role`, { token, body: { role: 'finance' } })
}

const acts: readonly [who: string, what: string, prepare: Prepare][] = [
  [
    'an operator that pays',
    'payment_received',
    async (shop) => () => fixture.paid(shop, { customer_phone: customer('00') }),
  ],
  [
    'a new key',
    'api_key_created',
    async ({ token }) =>
      () =>
        fixture.graphql(makeKey, {}, token),
  ],
  [
    'a key that is made anew',
    'key_regenerated',
    async ({ token }) => {
      const { body } = await fixture.graphql('{ apiKeys { nodes { id } } }', {}, token)
      return () => fixture.graphql(makeAnew, { id: body['data'].apiKeys.nodes[0].id }, token)
    },
  ],
  ['a higher role', 'role_raised', raise],
  [
    'the removal of a member with keys',
    'keys_revoked',
    async ({ merchantId }) => {
      const boss = await makeMember(access, merchantId, 'owner')
      await nameHolder(owner, access, merchantId)
      const { rows } = await owner.query<{ id: number }>(
        'SELECT issued_to_id AS id FROM api_key WHERE merchant_id = $1',
        [merchantId],
      )
      return () => fixture.rest('DELETE', `/team/${rows[0]?.id}`, { token: boss.token })
    },
  ],
  [
    'a caller who is refused for the address',
    'ip_blocked',
    async ({ token }) => {
      const from = (address: string) => ({ token, headers: { 'X-Forwarded-For': address } })
      const body = { ip_whitelist: ['192.0.2.7'] }
      await fixture.rest('PUT', '/settings', { ...from('192.0.2.7'), body })
      const balance = () => fixture.rest('GET', '/balance', from('203.0.113.9'))
      return () => eventually(async () => expect(await balance()).toMatchObject({ status: 403 }))
    },
  ],
  [
    'a job that disables an endpoint',
    'webhook_disabled',
    async (shop) => {
      const body = { url: (await receive(() => 500)).url, events: ['security_alert'] }
      await fixture.rest('POST', '/webhooks', { token: shop.token, body })
      return raise(shop)
    },
  ],
  [
    'a command of the terminal',
    'payout_cancelled',
    async (shop) => {
      await fixture.fund(shop, 10_000)
      await payOut(shop, { scheduled_at: ahead(hour) })
      const say = async (command: string) => {
        const environment = { DATABASE_URL: url, DATA_DIR: config.dataDir }
        const said = await adminHere({ environment }, 'merchant', command, '--id', `${shop.merchantId}`)
        expect(said).toMatchObject({ code: 0, stderr: '' })
      }
      await say('deactivate')
      return () => say('cancel-payouts')
    },
  ],
]

test.each(acts)('%s: %s is told at once', async (_who, what, prepare) => {
  const shop = await fixture.merchant()
  await watch(shop)
  const act = await prepare(shop)
  await eventually(async () => expect((await toldOf(shop)).every(({ told }) => told)).toBe(true))
  expect((await toldOf(shop)).map((event) => event.what)).not.toContain(what)
  await act()
  await becomesTold(shop, what)
})

test('the alert of a refused approval is told at once, though its verb throws', async () => {
  const { merchant, person } = await team()
  await watch(merchant)
  const newcomer = await person()
  await owner.query('UPDATE team_member SET approver_since = now() WHERE id = $1', [newcomer.memberId])
  const payout = await waiting(merchant)
  await becomesTold(merchant, 'payout_pending')
  expect(await approve(newcomer, payout)).toMatchObject({ code: 'FORBIDDEN' })
  await becomesTold(merchant, 'approval_refused')
})

test('a change of the settings that expires by itself is told at once', async () => {
  const { merchant, person } = await team()
  await watch(merchant)
  const { token } = await person('owner')
  await fixture.rest('PUT', '/settings', { token, body: { payouts_require_approval: false } })
  await becomesTold(merchant, 'settings_pending_approval')
  // A trigger keeps expiry times fixed.
  await owner.query('ALTER TABLE settings_change DISABLE TRIGGER settings_change_guard')
  await owner.query('UPDATE settings_change SET approval_expires_at = now()')
  await owner.query('ALTER TABLE settings_change ENABLE TRIGGER settings_change_guard')
  await becomesTold(merchant, 'settings_change_cancelled')
  expect((await toldOf(merchant)).at(-1)).toEqual({ what: 'settings_change_cancelled', told: true })
})
