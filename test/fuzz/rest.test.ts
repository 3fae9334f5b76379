import fc from 'fast-check'
import { type GraphQLInputType, isInputObjectType, getNullableType, Kind, typeFromAST } from 'graphql'
import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { restPrefix } from '../../src/http/rest/handler.ts'
import type { RestRoute } from '../../src/http/rest/route.ts'
import { restDocument } from '../../src/http/rest/documents.ts'
import { routes } from '../../src/http/rest/routes.ts'
import { passwordBounds } from '../../src/identity/members/passwords.ts'
import { schema } from '../../src/resources/schema.ts'
import { type RefusalCode, refusals } from '../../src/shared/errors.ts'
import { snakeCase } from '../../src/shared/input.ts'
import { type Field, fields, fieldValue, hostileText, hostileValue } from './hostile-inputs.ts'
import { plain, plainFields } from './plain-inputs.ts'
import {
  address,
  aDeposit,
  aPayment,
  authorization,
  sendInputs,
  type Counts,
  expectNoInternals,
  type Hit,
  openTarget,
  reached,
  type Shot,
  type FuzzVerdict,
} from './send-inputs.ts'

// A deposit that is under way is not waited for, and a password is hashed in no time.
vi.mock(import('../../src/shared/limits.ts'), async (original) => {
  const { limits } = await original()
  const quick = { depositWaitMs: 50, importsPerMerchantMax: 20 }
  return { limits: { ...limits, ...quick } as unknown as typeof limits }
})
Object.assign(passwordBounds, { memoryKib: 8, passes: 1 })

const target = await openTarget()
const documents = restDocument()

describe('1,000 random requests: never a 5xx, always the envelope, nothing written by a refusal', () => {
  test.each(routes.map((route) => [`${route.method} ${route.path}`, route] as const))(
    '%s',
    async (_name, route) => {
      const shots = { plain: plainShot(route), odd: shotsAt(route) }
      expect(await sendInputs(target, shots, (hit) => judge(route, hit))).toBeGreaterThan(reached)
    },
    600_000,
  )
})

/** The fields that a route reads, by its operation's variables: those of an input object one by one. */
function fieldsOf(route: RestRoute): Field[] {
  for (const definition of documents.definitions) {
    if (definition.kind !== Kind.OPERATION_DEFINITION || definition.name?.value !== route.operation) continue
    return (definition.variableDefinitions ?? []).flatMap(({ variable, type: node }) => {
      const type = typeFromAST(schema, node) as GraphQLInputType
      const bare = getNullableType(type)
      if (isInputObjectType(bare)) return Object.values(bare.getFields())
      return [{ name: variable.name.value, type }]
    })
  }
  throw new Error(`documents.ts has no ${route.operation}`)
}

/** The request of a plain call. */
function plainShot(route: RestRoute): Shot {
  const values = plainFields(
    route.operation.replace(/^[A-Z]/, (first) => first.toLowerCase()),
    fieldsOf(route),
  )
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => String(plain[name]))
  const inBody = Object.entries(values).filter(([name]) => !route.path.includes(`{${name}}`))
  const body = Object.fromEntries(inBody.map(([name, value]) => [snakeCase(name), value]))
  const headers = {
    authorization: `Bearer ${target.shop.token}`,
    'x-api-key': target.shop.apiKey,
    'x-api-secret': target.shop.apiSecret,
    'x-forwarded-for': '10.0.0.1',
  }
  const at = { method: route.method, path: `${restPrefix}${path}` }
  if (route.method === 'GET') return { ...at, headers, body: null }
  const sent = route.form ? formOf(values, null) : Buffer.from(JSON.stringify(body))
  return { ...at, headers: { ...headers, ...typeOf(route) }, body: sent }
}

function shotsAt(route: RestRoute): fc.Arbitrary<Shot> {
  const read = fieldsOf(route)
  const named = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? '')
  const path = fc
    .tuple(...named.map((name) => pathPart(read.find((field) => field.name === name))))
    .map((parts) => route.path.replaceAll(/\{\w+\}/g, () => parts.shift() ?? ''))
  const search = route.method === 'GET' ? queryOf(read.filter(({ name }) => !named.includes(name))) : oddQuery
  return fc
    .record({ path, search, body: sentTo(route, read), headers })
    .map(({ path: at, search: asked, body, headers: given }) => ({
      method: route.method,
      path: `${restPrefix}${at}${asked}`,
      headers: { ...(body === null ? {} : typeOf(route)), ...given },
      body,
    }))
}

function sentTo(route: RestRoute, read: readonly Field[]): fc.Arbitrary<Buffer | null> {
  if (route.method === 'GET') return fc.constant(null)
  return route.form ? formsOf(read) : bodyOf(read)
}

function typeOf({ form }: RestRoute): Record<string, string> {
  return { 'content-type': form ? 'multipart/form-data; boundary=form' : 'application/json' }
}

/** A form with the route's own fields: its recipients as a table, or any bytes in their place. */
function formsOf(read: readonly Field[]): fc.Arbitrary<Buffer | null> {
  const bytes = fc.uint8Array({ maxLength: 200 }).map((all) => Buffer.from(all).toString('latin1'))
  return fc
    .record({
      values: fields(read, 'values'),
      table: fc.oneof(
        { weight: 6, arbitrary: fc.constant(null) },
        { weight: 2, arbitrary: fc.constant('nom;numéro;montant\nAwa;70000001;1 000 F CFA') },
        { weight: 1, arbitrary: fc.oneof(bytes, hostileText) },
      ),
      end: fc.oneof({ weight: 12, arbitrary: fc.constant('--form--') }, fc.constant('')),
    })
    .map(({ values, table, end }) => formOf(values, table, end))
}

function formOf(values: Record<string, unknown>, table: string | null, end = '--form--'): Buffer {
  const { recipients, ...others } = values
  const texts = Object.entries(others).map(([name, value]) =>
    part(`name="${snakeCase(name)}"`, typeof value === 'string' ? value : JSON.stringify(value)),
  )
  return Buffer.from(
    [...texts, part('name="file"; filename="f"', table ?? tableOf(recipients)), end].join(''),
  )
}

function part(name: string, value: string | undefined): string {
  return `--form\r\nContent-Disposition: form-data; ${name}\r\n\r\n${value ?? ''}\r\n`
}

const columns = ['name', 'account', 'amount', 'paymentMethod']

function tableOf(recipients: unknown): string {
  const cell = (value: unknown) =>
    `"${(typeof value === 'string' ? value : JSON.stringify(value ?? '')).replaceAll('"', '""')}"`
  const rows = Array.isArray(recipients) ? recipients : [recipients]
  const lines = rows.map((row: unknown) =>
    columns.map((name) => cell((row as Record<string, unknown> | null)?.[name])).join(','),
  )
  return [columns.map(snakeCase).join(','), ...lines].join('\n')
}

function pathPart(field: Field | undefined): fc.Arbitrary<string> {
  const known = field ? fieldValue(field.name, field.type, 'values') : fc.integer({ min: 1, max: 50 })
  return fc.oneof(
    {
      weight: 6,
      arbitrary: known.map(
        (value) => encode(typeof value === 'string' ? value : JSON.stringify(value)) || 'x',
      ),
    },
    // As no well-behaved client would write them.
    {
      weight: 1,
      arbitrary: fc.constantFrom('%', '%zz', '%c0%af', '%ff', '%00', '%2e%2e', '%2f', '..;', '*'),
    },
  )
}

/** A lone surrogate has no UTF-8. */
function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed())
}

const oddQuery = fc.oneof(
  { weight: 9, arbitrary: fc.constant('') },
  fc.constantFrom('?', '?a', '?%', '?&&=', '?a[]=1'),
)

function queryOf(read: readonly Field[]): fc.Arbitrary<string> {
  const pair = (field: Field) =>
    fieldValue(field.name, field.type, 'values').map(
      (value) =>
        `${snakeCase(field.name)}=${encode(typeof value === 'string' ? value : JSON.stringify(value))}`,
    )
  const pairs = fc.oneof(
    ...read.flatMap((field) => (isInputObjectType(getNullableType(field.type)) ? [] : [pair(field)])),
    hostileText.map((text) => encode(text)),
  )
  return fc.oneof(
    { weight: 8, arbitrary: fc.array(pairs, { maxLength: 4 }).map((all) => `?${all.join('&')}`) },
    { weight: 1, arbitrary: oddQuery },
  )
}

/** Mostly the route's own fields with values of every sort; else any JSON, or no JSON at all. */
function bodyOf(read: readonly Field[]): fc.Arbitrary<Buffer | null> {
  const object = fields(read, 'values').map((values) =>
    Object.fromEntries(Object.entries(values).map(([name, value]) => [snakeCase(name), value])),
  )
  const json = fc.oneof({ weight: 12, arbitrary: object }, { weight: 1, arbitrary: hostileValue })
  return fc.oneof(
    { weight: 14, arbitrary: json.map((value) => Buffer.from(JSON.stringify(value) ?? '')) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)) },
    { weight: 1, arbitrary: fc.constantFrom(...oddBodies).map((text) => Buffer.from(text)) },
    { weight: 1, arbitrary: fc.constant(null) },
  )
}

const oddBodies = [
  '{',
  '{"amount":1e999}',
  '{"amount":5000,"amount":"x"}',
  '{"__proto__":{"amount":5000}}',
  '['.repeat(100_000 / 2),
  `{"a":${'['.repeat(30)}${']'.repeat(30)}}`,
  '"\\ud800"',
  '\ufeff{}',
  '// no\n{}',
  "{'amount':5000}",
  'x'.repeat(110_000),
]

/** Mostly new ones; some that others have used. */
const idempotencyKey = fc
  .oneof(fc.uuid(), fc.constantFrom('again', ' ', "'"))
  .map((key) => ({ 'idempotency-key': key }))

const headers: fc.Arbitrary<Record<string, string>> = fc
  .tuple(
    authorization(target.shop.token),
    fc.oneof(
      { weight: 10, arbitrary: fc.constant({}) },
      {
        weight: 1,
        arbitrary: fc.constantFrom<Record<string, string>>(
          { 'content-type': 'text/plain' },
          { 'content-type': 'application/json; charset=utf-16' },
          { 'content-type': 'multipart/form-data; boundary=x' },
          { 'content-encoding': 'gzip' },
          { 'accept-language': 'fr;q=x' },
          { 'x-request-id': 'not-a-uuid' },
          { 'idempotency-key': 'x'.repeat(256) },
          { 'idempotency-key': 'é' },
          { accept: 'image/png' },
        ),
      },
    ),
    fc.oneof(
      {
        weight: 4,
        arbitrary: fc.constant({ 'x-api-key': target.shop.apiKey, 'x-api-secret': target.shop.apiSecret }),
      },
      {
        weight: 1,
        arbitrary: fc.record({
          'x-api-key': fc.string({ unit: 'grapheme-ascii' }),
          'x-api-secret': fc.string({ unit: 'grapheme-ascii' }),
        }),
      },
      { weight: 1, arbitrary: fc.constant({}) },
    ),
    address.map((from) => ({ 'x-forwarded-for': from })),
    fc.oneof({ weight: 2, arbitrary: fc.constant({}) }, idempotencyKey),
  )
  .map((parts) => Object.assign({}, ...parts) as Record<string, string>)

/** A line of a table that was imported. */
const tableRow = z.partialRecord(
  z.enum(['name', 'account', 'amount', 'currency', 'payment_method']),
  z.string(),
)

const envelope = z.strictObject({
  success: z.boolean(),
  request_id: z.uuid(),
  message: z.string().min(1).optional(),
  code: z.enum(Object.keys(refusals) as RefusalCode[]).optional(),
  docs: z.url().optional(),
  errors: z
    .array(z.strictObject({ field: z.string(), message: z.string().min(1), row: tableRow.optional() }))
    .min(1)
    .optional(),
  required_scopes: z.array(z.string()).optional(),
  existing_transaction: z.strictObject({ id: z.int(), status: z.string() }).optional(),
  existing_payout: z.strictObject({ id: z.int(), status: z.string() }).optional(),
  data: z.unknown().optional(),
})

const statuses = [200, 201, 202, 400, 401, 403, 404, 405, 409, 413, 415, 429, 431]

function judge(route: RestRoute, hit: Hit): FuzzVerdict {
  expectNoInternals(hit)
  expect(statuses).toContain(hit.status)
  expect(hit.headers['content-type']).toBe('application/json; charset=utf-8')
  const answer: unknown = JSON.parse(hit.text)
  if (route.bare && hit.status === 200) {
    z.strictObject({ message: z.string(), state: z.string(), status: z.boolean() }).parse(answer)
    return { accepted: true }
  }
  const { success, message, code, docs, request_id, data } = envelope.parse(answer)
  expect(success).toBe(hit.status < 400)
  expect(hit.headers['x-request-id']).toBe(request_id)
  expect(success || message !== undefined).toBe(true)
  expect([code === undefined, docs === undefined]).toEqual([success, success])
  // A repeated answer wrote nothing: the first one did.
  if (hit.headers['idempotent-replayed']) return { accepted: success }
  // The member is gone or an owner, or the batch has gone on: the request passed all checks before that.
  const isOfOther = route.path.startsWith('/team') && [403, 404, 409].includes(hit.status)
  const isJudged = isOfOther || (route.path.startsWith('/bulk') && hit.status === 409)
  return { accepted: success || isJudged, wrote: writtenBy(route, hit, data) }
}

function writtenBy({ operation }: RestRoute, { shot, status }: Hit, data: unknown): Partial<Counts> {
  const success = status < 400
  const keys = shot.headers['idempotency-key'] === undefined ? 0 : 1
  if (operation === 'CreateBeneficiary') return success ? { beneficiaries: 1, keys } : {}
  if (operation === 'CreatePaymentLink') return success ? { links: 1, keys } : {}
  if (operation === 'CreatePayout') return success ? { payouts: 1, keys } : {}
  // A dry run answers 200, and keeps nothing.
  if (operation === 'CreateBatch') return status === 201 ? { batches: 1, keys } : {}
  if (operation === 'ProcessBatch') return status === 202 ? { keys } : {}
  if (operation === 'RegisterWebhook') return success ? { webhooks: 1, keys } : {}
  const keptOnly = ['UpdateBeneficiary', 'UpdateWebhook', 'RemoveWebhook', 'SendTestEvent']
  keptOnly.push('UpdateSettings', 'ChangeMemberRole', 'RemoveMember', 'AddRecipients', 'CancelBatch')
  keptOnly.push('UpdatePaymentLink')
  if (keptOnly.includes(operation)) return success ? { keys } : {}
  if (operation === 'InviteMember') return success ? { members: 1, keys } : {}
  // A payment that the operator refused is recorded, and so told; its answer is kept under its key.
  if (operation === 'CollectPayment' || operation === 'Deposit') {
    if (!success && data === undefined) return {}
    const made = operation === 'Deposit' ? aDeposit : aPayment
    return { ...made, keys }
  }
  const asked = operation === 'Balance' && success && 'operator_balance' in (data as object)
  return asked ? { checks: 1 } : {}
}
