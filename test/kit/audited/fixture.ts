import { getNamedType, isLeafType, isObjectType, isUnionType, type GraphQLObjectType } from 'graphql'
import { expect } from 'vitest'
import { readEmail } from '../../../src/http/pages/mail.ts'
import { schema } from '../../../src/resources/schema.ts'
import { makeMember } from '../members.ts'
import type { TestApp, TestMerchant } from '../app.ts'
import { eventually } from '../eventually.ts'
import type { MailServer } from '../mail-server.ts'

// The fixture runs every operation once: with a shop for each, people with passwords, and a list of the
// secrets that were shown.

/** The data of an answer, in any shape: the rows know the shape that they expect. */
export type Data = ReturnType<typeof JSON.parse>

/** A request by REST or GraphQL; a GraphQL one names the root field. */
export interface AuditedRequest {
  field?: string
  variables?: Record<string, unknown>
  method?: string
  path?: string
  /** A form is sent as it is. */
  body?: object | string
  headers?: Record<string, string>
  token?: string | undefined
}

export interface AuditedShop extends TestMerchant {
  /** The name of its API key in audit entries. */
  key: string
  keyId: number
}

export interface Person {
  email: string
  memberId: number
  password: string
  /** The token of the session that the invitation opened. */
  token: string
}

export interface AuditedFixture {
  service: TestApp
  /** Every secret that was issued or sent. */
  secrets: Set<string>
  shop(): Promise<AuditedShop>
  /** Sends a request. @returns the answer, and the `data` of the operation, null where it was refused */
  send(ask: AuditedRequest): Promise<{ data: Data; text: string; requestId: string }>
  /** Sends a request that must succeed. */
  done(ask: AuditedRequest): Promise<Data>
  /** Makes a member of the team that has accepted the invitation. */
  person(shop: AuditedShop, role?: string): Promise<Person>
  /** Makes a signed-in member of the team without a password. */
  member: (
    shop: AuditedShop,
    role: 'owner' | 'viewer',
  ) => Promise<{ memberId: number; sessionId: number; token: string }>
  invite(shop: AuditedShop): Promise<{ email: string; memberToken: string; memberId: number }>
  /** Reads the token in an email to this address that links to the page. */
  proofFor(address: string, page?: 'join' | 'reset-password'): Promise<string>
  requestReset(person: Person): Promise<string>
}

export function openFixture(service: TestApp, mail: MailServer): AuditedFixture {
  const secrets = new Set<string>()
  let count = 0
  const next = () => (count += 1)

  async function send(ask: AuditedRequest) {
    const authorization = { ...(ask.token !== undefined && { Authorization: `Bearer ${ask.token}` }) }
    const isRest = ask.field === undefined
    const body = isRest ? ask.body : { query: documentOf(ask.field ?? ''), variables: ask.variables ?? {} }
    collect(ask, secrets)
    const response = await fetch(`${service.url}${isRest ? `/merchant/api${ask.path}` : '/graphql'}`, {
      method: isRest ? (ask.method ?? 'GET') : 'POST',
      headers: { ...authorization, 'Content-Type': 'application/json', ...ask.headers },
      ...(body && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    const read = JSON.parse(text)
    const field = isRest ? (read.success ? (read.data ?? {}) : null) : read.data?.[ask.field ?? '']
    const data = String(field?.kind).endsWith('Error') ? null : (field ?? null)
    if (data) collect(data, secrets)
    return { data, text, requestId: response.headers.get('x-request-id') ?? '' }
  }

  const fixture: AuditedFixture = {
    service,
    secrets,
    send,
    async done(ask) {
      const answer = await send(ask)
      expect(answer).toMatchObject({ data: expect.anything() })
      return answer.data
    },
    async shop() {
      const made = await service.merchant(`Shop ${next()}`)
      const { rows } = await service.database.owner.query<{ id: number }>(
        'SELECT id FROM api_key WHERE key = $1',
        [made.apiKey],
      )
      const keyId = rows[0]?.id ?? 0
      secrets.add(made.apiSecret).add(made.token)
      return { ...made, keyId, key: `api_key:${keyId}` }
    },
    async member({ merchantId }, role) {
      const made = await makeMember(service.app.services.access, merchantId, role)
      secrets.add(made.token)
      return made
    },
    async invite(shop) {
      const email = `awa-${next()}@shop.test`
      const input = { name: 'Awa', email, role: 'FINANCE' }
      const { databaseId } = await fixture.done({
        field: 'inviteMember',
        variables: { input },
        token: shop.token,
      })
      return { email, memberId: databaseId, memberToken: await fixture.proofFor(email) }
    },
    async person(shop) {
      const { email, memberToken, memberId } = await fixture.invite(shop)
      const password = `une phrase bien longue ${next()}`
      const input = { token: memberToken, password }
      const { token } = await fixture.done({ field: 'acceptInvitation', variables: { input } })
      return { email, memberId, password, token }
    },
    async proofFor(address, page = 'join') {
      const link = new RegExp(`/${page}\\?lang=fr#(\\S+)`)
      const find = () =>
        mail.mails
          .filter(({ to }) => to === address)
          .map(({ data }) => link.exec(readEmail(data).text)?.[1])
          .find((memberToken) => memberToken !== undefined)
      const memberToken = await eventually(() => find() ?? Promise.reject(new Error('no letter yet')))
      secrets.add(memberToken)
      return memberToken
    },
    async requestReset({ email }) {
      await fixture.done({ field: 'requestPasswordReset', variables: { input: { email } } })
      return fixture.proofFor(email, 'reset-password')
    },
  }
  return fixture
}

const secretNames = new Set(['token', 'secret', 'uri', 'codes', 'password', 'current', 'code', 'apiSecret'])
const secretHeaders = new Set(['X-API-Secret'])

/** Collects every secret of a request or an answer, by the names of its fields. */
function collect(value: unknown, secrets: Set<string>, name = ''): void {
  if (Array.isArray(value)) for (const part of value) collect(part, secrets, name)
  else if (typeof value === 'object' && value !== null)
    for (const [key, part] of Object.entries(value)) collect(part, secrets, key)
  else if (typeof value === 'string' && (secretNames.has(name) || secretHeaders.has(name))) secrets.add(value)
}

/** Writes a mutation with all its arguments that selects all fields one or two levels deep. */
function documentOf(name: string): string {
  const field = schema.getMutationType()?.getFields()[name] ?? schema.getQueryType()?.getFields()[name]
  if (!field) throw new Error(`There is no ${name}.`)
  const kind = schema.getMutationType()?.getFields()[name] ? 'mutation' : 'query'
  const types = field.args.map((arg) => `$${arg.name}: ${String(arg.type)}`).join(', ')
  const given = field.args.map((arg) => `${arg.name}: $${arg.name}`).join(', ')
  const type = getNamedType(field.type)
  const members = isUnionType(type) ? type.getTypes() : isObjectType(type) ? [type] : []
  const made = members.filter((member) => !member.name.endsWith('Error'))
  const parts = made.map((member) => `... on ${member.name} { ${leavesOf(member, 1)} }`)
  if (isUnionType(type)) parts.push('... on Refusal { code message }')
  const selection = isLeafType(type) ? '' : ` { kind: __typename ${parts.join(' ')} }`
  return `${kind} ${types && `(${types})`} { ${name}${given && `(${given})`}${selection} }`
}

function leavesOf(type: GraphQLObjectType, deep: number): string {
  const parts = Object.values(type.getFields())
    .filter(({ args }) => args.length === 0)
    .map((field) => {
      const given = getNamedType(field.type)
      if (isLeafType(given)) return field.name
      return deep > 0 && isObjectType(given) ? `${field.name} { ${leavesOf(given, deep - 1)} }` : ''
    })
  return parts.join(' ')
}
