import {
  getNamedType,
  type GraphQLNamedType,
  isAbstractType,
  isInterfaceType,
  isLeafType,
  isObjectType,
  isUnionType,
} from 'graphql'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { passwordBounds } from '../../../src/identity/members/passwords.ts'
import { accessPlan } from '../../../src/graphql/access-plan.ts'
import { restDocument } from '../../../src/http/rest/documents.ts'
import { routes } from '../../../src/http/rest/routes.ts'
import { schema } from '../../../src/resources/schema.ts'
import { makeMember } from '../../kit/members.ts'
import { startTestApp, type TestApp } from '../../kit/app.ts'
import { type MailServer, startMailServer } from '../../kit/mail-server.ts'
import {
  type AuditedRequest,
  type AuditedFixture,
  openFixture,
  type AuditedShop,
} from '../../kit/audited/fixture.ts'
import { mutations } from '../../kit/audited/operations.ts'
import { useBounds } from '../../kit/use-bounds.ts'

// A replay under an `Idempotency-Key` shows a secret only to the credential that first got it (see
// docs/design/rules.md#idempotency). The schema marks the answers that hold a secret.

// The cost of a password hash is tested in `passwords.test.ts`.
useBounds(passwordBounds, { memoryKib: 64, passes: 1 })

let mail: MailServer
let service: TestApp
let fixture: AuditedFixture
beforeAll(async () => {
  mail = await startMailServer()
  service = await startTestApp({ SMTP_URL: mail.url, MAIL_FROM: 'Paiements <no-reply@pay.test>' })
  fixture = openFixture(service, mail)
})
afterAll(async () => {
  await service.close()
  await mail.close()
})

/** The types that values of these types may have, or lead to. */
function reachable(start: readonly GraphQLNamedType[]): Set<GraphQLNamedType> {
  const seen = new Set<GraphQLNamedType>()
  const open = [...start]
  for (let type = open.pop(); type; type = open.pop()) {
    if (seen.has(type)) continue
    seen.add(type)
    if (isAbstractType(type)) open.push(...schema.getPossibleTypes(type))
    if (isObjectType(type) || isInterfaceType(type))
      open.push(...Object.values(type.getFields()).map((field) => getNamedType(field.type)))
  }
  return seen
}

const mutationFields = Object.values(schema.getMutationType()?.getFields() ?? {})
const isSecret = ({ extensions }: { extensions: object }) =>
  (extensions as { isSecret?: boolean }).isSecret === true

/** The mutations with a field of their own result that is marked as a secret. */
const showing = mutationFields
  .filter(({ type: given }) => {
    const type = getNamedType(given)
    const members = isUnionType(type) ? type.getTypes() : [type]
    return members.some((member) => isObjectType(member) && Object.values(member.getFields()).some(isSecret))
  })
  .map(({ name }) => name)

/** Texts that only a mutation shows, and that prove nothing about the caller. */
const harmless = new Set([
  'AccessToken.tokenType',
  'AccessToken.scopes',
  'SignedIn.tokenType',
  'SignedIn.name',
  'SignedIn.email',
  'IssuedApiKey.key',
  'RemovedWebhook.id',
  'ExistingTransaction.id',
  'ExistingPayout.id',
  'PaymentInitiation.id',
  'PaymentInitiation.reference',
  'PaymentInitiation.paymentUrl',
  'InputProblem.field',
  'InputProblem.message',
  'InputWarning.field',
  'InputWarning.message',
  'BatchForecast.unknownNumbers',
])

test('every text that only a mutation shows is marked as a secret, or listed as harmless', () => {
  const query = schema.getQueryType()
  const read = reachable(query ? [query] : [])
  // A secret that is shown once is in no answer that can be read again.
  const shown = [...reachable(mutationFields.map(({ type }) => getNamedType(type)))].filter(
    (type) => isObjectType(type) && !read.has(type) && !type.name.endsWith('Error'),
  )
  const texts = shown.flatMap((type) =>
    isObjectType(type)
      ? Object.values(type.getFields())
          .filter(({ type: given }) => ['String', 'ID', 'JSON'].includes(getNamedType(given).name))
          .filter((field) => isLeafType(getNamedType(field.type)) && !isSecret(field))
          .map(({ name }) => `${type.name}.${name}`)
      : [],
  )
  expect(new Set(texts)).toEqual(harmless)
})

test('these mutations and routes show secrets; each mutation is replayed below', () => {
  expect(showing.toSorted()).toEqual([
    'acceptInvitation',
    'authenticate',
    'confirmTotp',
    'createApiKey',
    'regenerateApiKey',
    'registerWebhook',
    'rotateWebhookSecret',
    'sandboxSignIn',
    'signIn',
    'startTotp',
  ])
  const document = restDocument()
  const shows = routes.filter(({ operation }) => accessPlan(schema, document, operation).showsSecret)
  // POST /auth takes no credential but the pair itself: its answer is not kept.
  expect(shows.map(({ operation }) => operation)).toEqual(['Authenticate', 'RegisterWebhook'])
})

/** A token of the shop's key, or of another key of the shop. */
async function tokenOf(pair: { apiKey: string; apiSecret: string }, scopes?: readonly string[]) {
  const { body } = await service.rest('POST', '/auth', {
    headers: { 'X-API-Key': pair.apiKey, 'X-API-Secret': pair.apiSecret },
    body: { ...(scopes && { scopes }) },
  })
  return body['data'].token as string
}
const scopesOf = ['settings', 'webhooks', 'team', 'balance', 'deposit', 'payout']

/** Every other credential of the shop with the same scopes or fewer. */
async function othersOf(shop: AuditedShop): Promise<Record<string, string>> {
  const input = { name: 'Other', scopes: scopesOf.map((scope) => scope.toUpperCase()) }
  const made = await fixture.done({ field: 'createApiKey', variables: { input }, token: shop.token })
  const other = { apiKey: made.key, apiSecret: made.secret }
  const limited = await service.rest('POST', '/auth', {
    headers: { 'X-API-Key': shop.apiKey, 'X-API-Secret': shop.apiSecret },
    body: { scopes: scopesOf, limits: { max_per_day: 1_000 } },
  })
  const { access } = service.app.services
  const [boss, viewer] = [
    await makeMember(access, shop.merchantId, 'owner'),
    await makeMember(access, shop.merchantId, 'viewer'),
  ]
  return {
    'another key': await tokenOf(other, scopesOf),
    'the same key with fewer scopes': await tokenOf(shop, ['settings', 'webhooks']),
    'the same key, limited': limited.body['data'].token,
    'an owner': boss.token,
    'a viewer': viewer.token,
  }
}

describe('a replay of an answer with a secret', () => {
  test.each(showing)('%s: to the same credential alone', async (field) => {
    const shop = await fixture.shop()
    const prepare = mutations[field]
    if (!prepare || 'exempt' in prepare) throw new Error(`There is no case of ${field}.`)
    const { ask } = await prepare(field)(fixture, shop)
    const others = await othersOf(shop)
    const headers = { 'Idempotency-Key': `secret-of-${field}` }
    const own: AuditedRequest = { ...ask, token: ask.token ?? shop.token, headers }
    const before = new Set(fixture.secrets)
    const first = await fixture.send(own)
    expect(first.data).not.toBeNull()
    const shownSecrets = [...fixture.secrets].filter(
      (secret) => !before.has(secret) && first.text.includes(secret),
    )
    expect(shownSecrets.length).toBeGreaterThan(0)
    for (const [who, token] of Object.entries(others)) {
      const { text } = await fixture.send({ ...own, token })
      const found = shownSecrets.filter((secret) => text.includes(secret))
      expect({ who, found, code: JSON.parse(text).errors?.[0].extensions.code }).toEqual({
        who,
        found: [],
        // A caller without the scope is refused for that first.
        code: expect.stringMatching(/^(IDEMPOTENCY_KEY_REUSED|FORBIDDEN)$/),
      })
    }
    expect((await fixture.send(own)).text).toBe(first.text)
  })

  test('POST /webhooks: to the same credential alone', async () => {
    const shop = await fixture.shop()
    const body = { url: 'http://127.0.0.1:1/hook', events: ['payment_received'] }
    const register = (token: string) =>
      service.rest('POST', '/webhooks', { token, body, headers: { 'Idempotency-Key': 'hook-2026' } })
    const first = await register(shop.token)
    expect(first).toMatchObject({ status: 201, body: { data: { secret: expect.any(String) } } })
    for (const [who, token] of Object.entries(await othersOf(shop))) {
      const { status, body: answer } = await register(token)
      expect({ who, status, data: answer['data'] }).toEqual({
        who,
        status: who === 'a viewer' ? 403 : 400,
        data: undefined,
      })
    }
    const again = await register(shop.token)
    expect(again.headers.get('idempotent-replayed')).toBe('true')
    expect(again.body).toEqual(first.body)
    // Another token of the same key, with the same scopes, is the same credential.
    const all = await tokenOf(shop, ['pay', ...scopesOf, 'payment_links', 'beneficiaries', 'bulk_pay'])
    expect((await register(all)).body).toEqual(first.body)
  })

  test('a person who signed in again gets the secret again', async () => {
    const shop = await fixture.shop()
    const { email, password, token } = await fixture.person(shop)
    const ask: AuditedRequest = {
      field: 'startTotp',
      variables: { password },
      headers: { 'Idempotency-Key': 'my-second-factor' },
    }
    const first = await fixture.send({ ...ask, token })
    const session = await fixture.done({ field: 'signIn', variables: { input: { email, password } } })
    expect(session.token).not.toBe(token)
    expect((await fixture.send({ ...ask, token: session.token })).text).toBe(first.text)
  })

  test('an answer without a secret is replayed to every credential of the merchant', async () => {
    const shop = await fixture.shop()
    const others = await othersOf(shop)
    const headers = { 'Idempotency-Key': 'awa' }
    const invite = { name: 'Awa', email: 'awa@shop.test' }
    const once = (token: string) => service.rest('POST', '/team/invite', { token, body: invite, headers })
    const first = await once(shop.token)
    expect(first.status).toBe(201)
    expect((await once(others['another key'] ?? '')).headers.get('idempotent-replayed')).toBe('true')
  })
})
