import fc from 'fast-check'
import {
  getNamedType,
  isNonNullType,
  type GraphQLField,
  type GraphQLNamedType,
  isInterfaceType,
} from 'graphql'
import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { passwordBounds } from '../../src/identity/members/passwords.ts'
import { schema } from '../../src/resources/schema.ts'
import { type Field, fields, hostileText, hostileValue, usual } from './hostile-inputs.ts'
import { variableOf } from '../kit/variable-of.ts'
import { selectionOf, selectionOfMembers } from '../kit/whole-selections.ts'
import { optional, plain, plainFields } from './plain-inputs.ts'
import {
  address,
  aDeposit,
  aPayment,
  authorization,
  sendInputs,
  expectNoInternals,
  type Counts,
  type Hit,
  openTarget,
  ordersCount,
  reached,
  type Shot,
  type FuzzVerdict,
  waitingBatches,
  waitingPayouts,
} from './send-inputs.ts'

// A deposit that is under way is not waited for, and a password is hashed in no time.
vi.mock(import('../../src/shared/limits.ts'), async (original) => {
  const { limits } = await original()
  const quick = { depositWaitMs: 50 }
  return { limits: { ...limits, ...quick } as unknown as typeof limits }
})
Object.assign(passwordBounds, { memoryKib: 8, passes: 1 })

const target = await openTarget()
const batch = fc.tuple(fc.constant('Batch'), fc.integer({ min: 1, max: waitingBatches }))
Object.assign(usual, {
  batchId: batch.map(([type, id]) => btoa(`${type}:${id}`)),
  id: fc
    .oneof(
      fc.tuple(fc.constant('Transaction'), fc.integer({ min: 1, max: ordersCount })),
      fc.tuple(fc.constant('Beneficiary'), fc.constantFrom(1, 2, 3)),
      fc.tuple(fc.constant('PaymentLink'), fc.constantFrom(1, 2, 3)),
      fc.tuple(fc.constant('TeamMember'), fc.constantFrom(1, 2, 3)),
      fc.tuple(fc.constant('ApiKey'), fc.constantFrom(...target.otherKeys)),
      fc.tuple(fc.constant('Payout'), fc.integer({ min: 1, max: waitingPayouts })),
      batch,
      fc.tuple(fc.constant('Webhook'), fc.constant(1)),
    )
    .map(([type, id]) => btoa(`${type}:${id}`)),
  category: fc.constantFrom('SUPPLIER', 'CUSTOMER'),
  apiKey: fc.constant(target.shop.apiKey),
  apiSecret: fc.constant(target.shop.apiSecret),
  scopes: fc.constantFrom(['BALANCE'], null),
  role: fc.constantFrom('FINANCE', 'VIEWER'),
})

Object.assign(plain, {
  role: 'FINANCE',
  scopes: ['BALANCE'],
  events: ['PAYMENT_RECEIVED'],
})
optional['authenticate'] = { apiKey: target.shop.apiKey, apiSecret: target.shop.apiSecret }

/** Fields about people, and those that a person uses. */
const people = new RegExp(
  'member|session|signIn|signOut|invitation|password|totp|' +
    '^(approve|reject)(Payout|Batch|Deposit|SettingsChange)$',
  'i',
)
const ofPersons = /^sessions$|changePassword|Totp|^(approve|reject)|updateSettings/

type RootField = GraphQLField<unknown, unknown>

const roots = (['query', 'mutation'] as const).flatMap((kind) => {
  const type = kind === 'query' ? schema.getQueryType() : schema.getMutationType()
  return Object.values(type?.getFields() ?? {}).map(
    (field) => [`${kind} ${field.name}`, kind, field] as const,
  )
})

describe('1,000 random calls: never a 5xx, errors with codes only, nothing written by a refusal', () => {
  test.each(roots)(
    '%s',
    async (_name, kind, field) => {
      const accepted = await sendInputs(target, callsOf(kind, field), (hit) => judge(field, hit))
      expect(accepted).toBeGreaterThan(reached)
    },
    600_000,
  )

  test.each([
    'transactionChanged',
    'payoutChanged',
    'approvalsChanged',
    'batchProgress',
    'paymentLinkUsed',
    'events',
  ])(
    'subscription %s',
    async (name) => {
      const field = schema.getSubscriptionType()?.getFields()[name]
      if (!field) throw new Error(`the schema has no ${name}`)
      // A stream that begins is left at once, by its refusal to answer anything but events.
      const { plain: first, odd } = callsOf('subscription', field)
      const refused = odd.map((shot) => ({
        ...shot,
        headers: { ...shot.headers, accept: 'application/json' },
      }))
      const accepted = await sendInputs(target, { plain: first, odd: refused }, (hit) => judge(field, hit))
      expect(accepted).toBeGreaterThan(reached)
    },
    600_000,
  )

  test('documents cut and stirred at random', async () => {
    const whole = callWith({ query: examples[0], variables: {} }, plainHeaders(target.shop.token))
    const inputs = { plain: whole, odd: brokenDocuments }
    expect(await sendInputs(target, inputs, (hit) => judge(null, hit))).toBeGreaterThan(reached)
  }, 600_000)
})

function callsOf(kind: string, field: RootField): { plain: Shot; odd: fc.Arbitrary<Shot> } {
  const named: Field[] = field.args.map(variableOf)
  const types = named.map(({ name, type }) => `$${name}: ${String(type)}`)
  const given = field.args.map((arg) => `${arg.name}: $${arg.name}`)
  const call = given.length > 0 ? `${field.name}(${given.join(', ')})` : field.name
  const head = types.length > 0 ? `${kind} Fuzz(${types.join(', ')})` : `${kind} Fuzz`
  const queries = selectionsOf(getNamedType(field.type)).map((set) => `${head} { ${call}${set} }`)
  const variables = fc.oneof(
    { weight: 12, arbitrary: fields(named, 'names') },
    { weight: 1, arbitrary: hostileValue },
  )
  const { token } = ofPersons.test(field.name) ? target.person : target.shop
  const sent = fc.record({ variables, headers: headersOf(token), query: fc.constantFrom(...queries) })
  const first = { query: queries[0], variables: { ...plainFields(field.name, named), ...idsOf(field) } }
  return {
    plain: callWith(first, plainHeaders(token)),
    odd: sent.map(({ headers: credentials, ...body }) => callWith(body, credentials)),
  }
}

/** The ids of the rows that a call is about, of their own types. */
function idsOf({ name, args }: RootField): Record<string, unknown> {
  const [type, id] = Object.entries(subjects).find(([words]) => new RegExp(words).test(name))?.[1] ?? []
  const global = btoa(`${type}:${id}`)
  const ids = args.filter((arg) => isNonNullType(arg.type) && getNamedType(arg.type).name === 'ID')
  return Object.fromEntries(ids.map((arg) => [arg.name, arg.name === 'ids' ? [global] : global]))
}

/** The first of these words that a call's name has tells what its id is of. */
const subjects: Record<string, readonly [type: string, id: number | undefined]> = {
  'atch|Recipients|retry': ['Batch', 1],
  eneficiary: ['Beneficiary', 1],
  '^member$': ['TeamMember', 1],
  'ember|resendInvitation': ['TeamMember', 2],
  aymentLink: ['PaymentLink', 1],
  ayout: ['Payout', 1],
  'ebhook|Event': ['Webhook', 1],
  regenerateApiKey: ['ApiKey', target.otherKeys[0]],
  revokeApiKey: ['ApiKey', target.otherKeys[1]],
  '': ['Transaction', 1],
}

function callWith(body: object, credentials: Record<string, string>): Shot {
  return {
    method: 'POST',
    path: '/graphql',
    headers: credentials,
    body: Buffer.from(JSON.stringify(body)),
  }
}

function plainHeaders(token: string): Record<string, string> {
  const json = 'application/json'
  const from = { 'x-forwarded-for': '10.0.0.1' }
  return { 'content-type': json, accept: json, authorization: `Bearer ${token}`, ...from }
}

/**
 * All that can be asked of a root field's type; of an interface, which many types have, in two documents,
 * because one would have more fields side by side than the service allows.
 */
function selectionsOf(type: GraphQLNamedType): string[] {
  if (!isInterfaceType(type)) return [selectionOf(type, 3)]
  const members = schema.getPossibleTypes(type)
  const half = Math.ceil(members.length / 2)
  return [members.slice(0, half), members.slice(half)].map((some) => selectionOfMembers(some, 3))
}

const headersOf = (token: string): fc.Arbitrary<Record<string, string>> =>
  fc
    .tuple(
      authorization(token),
      // A client that also accepts events would get a stream that never ends.
      fc.constantFrom('application/json', 'application/graphql-response+json'),
      address,
    )
    .map(([credentials, accept, from]) => ({
      'content-type': 'application/json',
      accept,
      'x-forwarded-for': from,
      ...credentials,
    }))
const headers = headersOf(target.shop.token)

const examples = [
  '{ me { id } balance { available } }',
  'query Q($n: Int = 3) { transactions(first: $n, filter: { status: SUCCESS }) { nodes { id } totalCount } }',
  'mutation { collectPayment(input: { amount: 500, customerPhone: "70000001" }) { __typename } }',
  'fragment F on Query { serviceStatus { status } } query { ...F ... on Query { operators { collect } } }',
  'subscription { transactionChanged(after: "0") { sequence } }',
  '{ __schema { types { name fields { name type { name ofType { name } } } } } }',
]

const pieces = [
  '{',
  '}',
  '(',
  ')',
  '...',
  '@skip(if: true)',
  '$a',
  '"""',
  '\\u{110000}',
  '#',
  '&',
  '[',
  ']',
  '!',
  '\u0000',
]

const brokenDocuments: fc.Arbitrary<Shot> = fc
  .record({
    example: fc.constantFrom(...examples),
    cuts: fc.array(fc.tuple(fc.nat(200), fc.nat(30), fc.oneof(fc.constantFrom(...pieces), hostileText)), {
      maxLength: 4,
    }),
    variables: fc.oneof(fc.constant(undefined), hostileValue),
    operationName: fc.oneof(fc.constant(undefined), hostileValue),
    extensions: fc.oneof(
      { weight: 5, arbitrary: fc.constant(undefined) },
      { weight: 1, arbitrary: hostileValue },
    ),
    method: fc.constantFrom('POST', 'POST', 'POST', 'GET'),
    headers: headers,
  })
  .map(({ example, cuts, method, headers: sent, ...rest }) => {
    const query = cuts.reduce(
      (text, [at, length, put]) => text.slice(0, at) + put + text.slice(at + length),
      example,
    )
    if (method === 'GET') {
      const { 'content-type': _type, ...others } = sent
      const path = `/graphql?query=${encodeURIComponent(query.toWellFormed().slice(0, 4_000))}`
      return { method, path, headers: others, body: null }
    }
    return { method, path: '/graphql', headers: sent, body: Buffer.from(JSON.stringify({ query, ...rest })) }
  })

const answerShape = z.strictObject({
  data: z.record(z.string(), z.unknown()).nullable().optional(),
  errors: z
    .array(
      z.looseObject({
        message: z.string().min(1),
        extensions: z.looseObject({ code: z.string().regex(/^[A-Z_]+$/) }),
      }),
    )
    .min(1)
    .max(5)
    .optional(),
  extensions: z.unknown().optional(),
})

function judge(field: RootField | null, hit: Hit): FuzzVerdict {
  expectNoInternals(hit)
  const { data, errors = [] } = answerShape.parse(JSON.parse(hit.text))
  const codes = errors.map(({ extensions }) => extensions.code)
  for (const code of codes) expect(code).not.toMatch(/^INTERNAL/)
  const [value] = Object.values(data ?? {})
  // Not every mistake is one of the document's: a stream is refused for what the client accepts.
  if (codes.includes('BAD_REQUEST'))
    return { accepted: errors.some(({ message }) => /accept/i.test(message)) }
  // A token of no invitation has passed every check, where nothing else is wrong.
  if (value === null && errors.length === 0 && field?.name === 'invitation') return { accepted: true }
  if (value === null || value === undefined) return { accepted: false }
  const { __typename: type = '' } = value as { __typename?: string }
  const refused = type.endsWith('Error')
  const isOfPeople = people.test(field?.name ?? '') && (type !== 'InvalidInputError' || isUnproven(value))
  // A batch that has gone on, or not yet: it got that far.
  const isJudged = isOfPeople || type === 'StateConflictError'
  return { accepted: !refused || isJudged, wrote: writtenBy(field, value) }
}

/** Whether an input is well formed, but its token or code proves nothing. */
function isUnproven(value: object): boolean {
  const { problems = [] } = value as { problems?: { message: string }[] }
  return problems.some(({ message }) => message.startsWith('is not a valid '))
}

/** The rows that an answer claims to have written. */
function writtenBy(field: RootField | null, value: unknown): Partial<Counts> {
  if (field?.name === 'sandboxFund') return { funds: 1 }
  if (typeof value !== 'object') return {}
  const { __typename: type } = value as { __typename?: string }
  if (field?.name === 'createBeneficiary' && type === 'Beneficiary') return { beneficiaries: 1 }
  if (field?.name === 'createPaymentLink' && type === 'PaymentLink') return { links: 1 }
  if (type === 'PaymentInitiation' || type === 'PaymentRefusedError')
    return field?.name === 'collectPayment' ? aPayment : aDeposit
  if (field?.name === 'registerWebhook' && type === 'WebhookSecret') return { webhooks: 1 }
  if (field?.name === 'inviteMember' && type === 'TeamMember') return { members: 1 }
  if (type === 'IssuedApiKey') return { keyVersions: 1 }
  if (field?.name === 'createPayout' && type === 'Payout') return { payouts: 1 }
  // A dry run shows no batch.
  if (field?.name === 'createBatch' && (value as { batch?: object }).batch) return { batches: 1 }
  if (type === 'PaymentInitiation' || type === 'PaymentRefusedError') return aPayment
  const asked = (value as Record<string, unknown>)['operatorBalance']
  return typeof asked === 'number' ? { checks: 1 } : {}
}
