import { createClient } from 'graphql-ws'
import { describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { makeMember } from '../../kit/members.ts'
import type { TestMerchant } from '../../kit/app.ts'
import { eventually } from '../../kit/eventually.ts'
import { openFixture } from '../../kit/fixture.ts'

// Settings (see docs/design/rules.md#settings). The trusted proxy names the address of each caller.
const fixture = await openFixture({ TRUSTED_PROXIES: '127.0.0.1' })
const shop = await fixture.merchant('Chez Awa')

const home = { 'X-Forwarded-For': '192.0.2.7' }
const elsewhere = { 'X-Forwarded-For': '203.0.113.9' }
const put = (body: unknown, { token }: { token: string } = shop, headers: Record<string, string> = home) =>
  fixture.rest('PUT', '/settings', { token, body, headers })
const settingsOf = async ({ token }: TestMerchant) =>
  (await fixture.rest('GET', '/settings', { token, headers: home })).body['data']

async function alertsOf({ merchantId }: TestMerchant): Promise<Record<string, string>[]> {
  const { rows } = await fixture.database.owner.query<{ data: Record<string, string> }>(
    `SELECT data FROM event WHERE merchant_id = $1 AND type = 'security_alert' ORDER BY id`,
    [merchantId],
  )
  return rows.map(({ data }) => data)
}

describe('GET and PUT /settings', () => {
  const defaults = {
    business_name: 'Chez Awa',
    notification_email: null,
    payouts_require_approval: false,
    approval_threshold: 0,
    approvals_required: 1,
    approvals_cover_deposits: false,
    ip_whitelist: [],
    locale: 'fr',
    time_zone: 'Africa/Bamako',
    business_phone: null,
    business_address: null,
  }

  test('only the given fields change, and GraphQL shows the same', async () => {
    expect(await settingsOf(shop)).toEqual(defaults)
    const changed = { notification_email: 'Awa@shop.test', approval_threshold: 250_000, locale: 'en' }
    const { status, body } = await put({ ...changed, unknown: 1 })
    expect({ status, data: body['data'] }).toEqual({ status: 200, data: { ...defaults, ...changed } })
    expect((await put({ business_name: 'Awa & Filles' })).body['data']).toMatchObject(changed)

    const { body: answer } = await fixture.graphql(
      `mutation ($input: UpdateSettingsInput!) { updateSettings(input: $input) { ... on Settings {
        businessName notificationEmail payoutsRequireApproval approvalThreshold
        approvalsRequired ipWhitelist locale timeZone } } }`,
      { input: { notificationEmail: '', locale: 'FR' } },
      shop.token,
    )
    expect(answer['data'].updateSettings).toEqual({
      businessName: 'Awa & Filles',
      notificationEmail: null,
      payoutsRequireApproval: false,
      approvalThreshold: 250_000,
      approvalsRequired: 1,
      ipWhitelist: [],
      locale: 'FR',
      timeZone: 'Africa/Bamako',
    })
  })

  test('the telephone number is kept as E.164; an empty text removes it, and the address', async () => {
    const { body } = await put({ business_phone: '20 22 33 44', business_address: 'Rue 12, Bamako' })
    const kept = { business_phone: '+22320223344', business_address: 'Rue 12, Bamako' }
    expect(body['data']).toMatchObject(kept)
    expect(await settingsOf(shop)).toMatchObject(kept)
    const gone = { business_phone: null, business_address: null }
    expect((await put({ business_phone: '', business_address: '' })).body['data']).toMatchObject(gone)
  })

  test.each([
    ['business_phone', '12 34', 'must be a telephone number, such as +223 76 12 34 56, or empty'],
    ['business_address', 'x'.repeat(201), 'must have at most 200 characters'],
    ['business_address', 5, 'must be text'],
  ])('a wrong %s is refused in words', async (field, value, message) => {
    const { status, body } = await put({ [field]: value })
    expect([status, body['errors']]).toEqual([400, [expect.objectContaining({ field, message })]])
  })

  test('403 without the scope settings', async () => {
    const { body } = await fixture.rest('POST', '/auth', {
      headers: { 'X-API-Key': shop.apiKey, 'X-API-Secret': shop.apiSecret, ...home },
    })
    const narrow = { token: body['data'].token as string }
    const read = await fixture.rest('GET', '/settings', { ...narrow, headers: home })
    for (const answer of [read, await put({ locale: 'en' }, narrow)]) {
      expect(answer).toMatchObject({ status: 403, body: { required_scopes: ['settings'] } })
    }
  })

  test.each([
    ['business_name', ' '],
    ['business_name', 'x'.repeat(201)],
    ['notification_email', 'awa'],
    ['business_phone', '12 34'],
    ['business_phone', '+0 123 456 789'],
    ['business_phone', 'call me'],
    ['business_address', 'x'.repeat(201)],
    ['business_address', ' '],
    ['business_address', 'Rue 12\nBamako'],
    ['payouts_require_approval', 'yes'],
    ['approval_threshold', -1],
    ['approval_threshold', 10.5],
    ['approvals_required', 0],
    ['approvals_required', 4],
    ['approvals_required', '2'],
    ['approvals_required', 1.5],
    ['locale', 'bm'],
    ['time_zone', 'Africa/Timbuktu2'],
    ['time_zone', '+01:00'],
    ['time_zone', 'Asia/Kolkata'],
    ['time_zone', 'Australia/Lord_Howe'],
    ['ip_whitelist', '192.0.2.7'],
    ['ip_whitelist', Array.from({ length: 51 }, (_none, n) => `192.0.2.${n}`)],
  ])('400 %s %j, and nothing changes', async (field, value) => {
    const before = await settingsOf(shop)
    const { status, body } = await put({ business_name: 'Other', [field]: value })
    expect({ status, field: body['errors']?.[0].field }).toEqual({ status: 400, field })
    expect(await settingsOf(shop)).toEqual(before)
  })

  test('payouts from the threshold on wait for a person from then on', async () => {
    const merchant = await fixture.merchant()
    await fixture.fund(merchant, 20_000)
    await put({ payouts_require_approval: true, approval_threshold: 5_000 }, merchant)
    const payout = { destination_phone: '70000001', payment_method: 'OperatorA' }
    const approvals = []
    for (const amount of [4_999, 5_000]) {
      const { body } = await fixture.rest('POST', '/payouts', {
        token: merchant.token,
        body: { ...payout, amount },
      })
      approvals.push(body['data'].approval)
    }
    expect(approvals).toEqual(['not_required', 'pending'])
  })
})

describe('a change of approvals', () => {
  const asked = { payouts_require_approval: true, approval_threshold: 5_000, approvals_required: 2 }
  const looser = [
    { payouts_require_approval: false },
    { approval_threshold: 5_001 },
    { approvals_required: 1 },
  ]

  test('by an API key can require them and more of them, and never fewer', async () => {
    const merchant = await fixture.merchant()
    // While none are required, no change loosens them.
    for (const change of [{ approvals_required: 3, approval_threshold: 9_000 }, asked]) {
      expect(await put(change, merchant)).toMatchObject({ status: 200 })
    }
    for (const change of looser) {
      expect(await put({ ...change, business_name: 'Other' }, merchant)).toMatchObject({
        status: 403,
        body: { success: false, message: expect.stringContaining('signed-in owner or admin') },
      })
    }
    const mutation = `mutation { updateSettings(input: { payoutsRequireApproval: false }) {
      ... on ForbiddenError { code } } }`
    const { body } = await fixture.graphql(mutation, {}, merchant.token)
    expect(body['data'].updateSettings).toEqual({ code: 'FORBIDDEN' })
    expect(await settingsOf(merchant)).toMatchObject({ ...asked, business_name: 'Boutique' })
    for (const change of [asked, { approval_threshold: 1_000 }, { approvals_required: 3 }]) {
      expect(await put(change, merchant)).toMatchObject({ status: 200 })
    }
  })

  test.each(['owner', 'admin'] as const)(
    'that %s requests waits for the decision of others',
    async (role) => {
      const merchant = await fixture.merchant()
      const person = await makeMember(fixture.app.services.access, merchant.merchantId, role)
      await put(asked, merchant)
      const all = Object.assign({}, ...looser) as object
      expect(await put({ ...all, locale: 'en' }, person)).toMatchObject({
        status: 202,
        body: {
          data: { ...asked, locale: 'en', pending_change: { ...all, team_member_id: person.memberId } },
        },
      })
    },
  )

  test('is decided against the current settings: of two at once none passes the other', async () => {
    const merchant = await fixture.merchant()
    const answers = await Promise.all([
      put({ payouts_require_approval: true }, merchant),
      put({ approval_threshold: 9_000 }, merchant),
    ])
    const { approval_threshold: threshold } = await settingsOf(merchant)
    expect(threshold).toBe(answers[1]?.status === 200 ? 9_000 : 0)
    expect(answers[0]?.status).toBe(200)
  })
})

describe('the whitelist', () => {
  test.each([
    'nonsense',
    '',
    '192.0.2.7/33',
    '192.0.2.7/24',
    '192.0.2.7/-1',
    '192.0.2.07',
    '2001:db8::1/32',
    '2001:db8::/129',
    'fe80::1%eth0',
    '::ffff:192.0.2.7/64',
    'example.com',
    '192.0.2.7:80',
  ])('400 the entry %j, named by its index', async (entry) => {
    const { status, body } = await put({ ip_whitelist: ['192.0.2.7', entry] })
    expect({ status, field: body['errors']?.[0].field }).toEqual({ status: 400, field: 'ip_whitelist[1]' })
  })

  test('entries have one notation, and each appears once', async () => {
    const merchant = await fixture.merchant()
    const written = ['192.0.2.0/24', ' 198.51.100.4/32', '::ffff:192.0.2.0/120', '2001:DB8:0:0::/32']
    const { body } = await put({ ip_whitelist: written }, merchant)
    expect(body['data'].ip_whitelist).toEqual(['192.0.2.0/24', '198.51.100.4', '2001:db8::/32'])
  })

  test('400 a list that would shut out the caller; the caller still gets in', async () => {
    for (const list of [['198.51.100.4'], ['198.51.100.0/24', '2001:db8::/32']]) {
      const { status, body } = await put({ ip_whitelist: list })
      expect({ status, message: body['message'] }).toEqual({
        status: 400,
        message: expect.stringContaining('192.0.2.7'),
      })
    }
    expect(await settingsOf(shop)).toMatchObject({ ip_whitelist: [] })
  })

  test('it soon holds for every protocol of every node, and the log gets an event', async () => {
    const merchant = await fixture.merchant()
    const other = await fixture.sibling()
    const ended = socketEnd(other, merchant)
    await eventually(() => expect(ended.isOpen()).toBe(true))
    await put({ ip_whitelist: ['192.0.2.7'] }, merchant)
    await put({ ip_whitelist: ['192.0.2.7'], locale: 'en' }, merchant)

    expect(await ended.code).toBe(4403)
    const { token, apiKey, apiSecret } = merchant
    const pair = { 'X-API-Key': apiKey, 'X-API-Secret': apiSecret }
    const graphql = () =>
      fetch(`${other}/graphql`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}`, ...elsewhere },
        body: '{"query":"{ me { scopes } }"}',
      })
    await eventually(async () => expect((await graphql()).status).toBe(403))
    await eventually(async () =>
      expect((await fixture.rest('GET', '/balance', { token, headers: elsewhere })).status).toBe(403),
    )
    expect((await fixture.rest('POST', '/auth', { headers: { ...pair, ...elsewhere } })).status).toBe(403)
    expect((await fixture.rest('POST', '/auth', { headers: { ...pair, ...home } })).status).toBe(200)
    expect((await fixture.rest('GET', '/balance', { token, headers: home })).status).toBe(200)

    // One address raises one alert, however often it comes, and to any node.
    await eventually(async () =>
      expect(await alertsOf(merchant)).toEqual([
        {
          kind: 'whitelist_changed',
          message: expect.stringMatching(/by api_key:\d+: it has 1 entries\.$/),
          ip: '192.0.2.7',
        },
        { kind: 'ip_blocked', message: expect.any(String), ip: '203.0.113.9' },
      ]),
    )
  })

  test('of many addresses ten raise an alert', async () => {
    const merchant = await fixture.merchant()
    const { blocked } = fixture.app.services.access
    for (let n = 0; n < 30; n += 1) blocked.record(merchant.merchantId, `198.51.100.${n}`)
    await eventually(async () => expect(await alertsOf(merchant)).toHaveLength(10))
    await eventually(async () => {
      const { rowCount } = await fixture.database.owner.query('SELECT FROM rate_limit WHERE name LIKE $1', [
        `blocked:${merchant.merchantId}:%`,
      ])
      expect(rowCount).toBe(30)
    })
    expect(await alertsOf(merchant)).toHaveLength(10)
  })
})

/** A live stream from an address which is not on the whitelist. */
function socketEnd(url: string, { token }: TestMerchant) {
  let open = false
  const code = new Promise<number>((resolve) => {
    class FromElsewhere extends WebSocket {
      constructor(address: string, protocol: string) {
        super(address, protocol, { headers: elsewhere })
      }
    }
    const client = createClient({
      url: `${url.replace('http', 'ws')}/graphql`,
      webSocketImpl: FromElsewhere,
      lazy: false,
      retryAttempts: 0,
      onNonLazyError: () => {},
      connectionParams: { authorization: `Bearer ${token}` },
      on: {
        connected: () => {
          open = true
        },
        closed: (event) => resolve((event as CloseEvent).code),
      },
    })
    client.subscribe(
      { query: 'subscription { transactionChanged { sequence } }' },
      { next: () => {}, error: () => {}, complete: () => {} },
    )
  })
  return { code, isOpen: () => open }
}
