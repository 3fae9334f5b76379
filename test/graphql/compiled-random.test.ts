import { hash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { normalizedExecutor } from '@graphql-tools/executor'
import { MapperKind, mapSchema } from '@graphql-tools/utils'
import {
  defaultFieldResolver,
  type ExecutionResult,
  type GraphQLResolveInfo,
  type GraphQLSchema,
  parse,
} from 'graphql'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Context } from '../../src/context.ts'
import { asMerchant } from '../../src/database/merchant-pool.ts'
import { compile } from '../../src/graphql/compiled.ts'
import { toGraphQLError } from '../../src/graphql/errors.ts'
import { fundMerchant } from '../../src/resources/merchants/fund.ts'
import { schema } from '../../src/resources/schema.ts'
import { startTestApp, type TestApp, type TestMerchant } from '../kit/app.ts'
import { randomFrom } from '../kit/random.ts'
import { type RandomDocument, randomDocument } from '../kit/random-documents.ts'
import { seed } from '../kit/seeds.ts'
import { strength } from '../kit/strength.ts'

const documents = strength(150, 8_000)

let app: TestApp
let shop: TestMerchant
let context: Context
let texts: string[]
beforeAll(async () => {
  app = await startTestApp()
  shop = await app.merchant()
  const { services } = app.app
  await fundMerchant(services, shop.merchantId, { amount: 1_000_000n })
  await makeRows()
  context = {
    ...services,
    actor: await services.access.tokens.verifyToken(shop.token),
    requestId: '0198c0de-0000-7000-8000-000000000000',
    clientAddress: '127.0.0.1',
    channel: 'graphql',
    idempotentOperation: null,
    language: 'en',
    responseHeaders: new Map(),
    asOfSequence: null,
    sessionCookie: null,
    lastEventId: null,
    loaders: new Map(),
  }
  texts = [...(await globalIds()), '1', '2', '3', '99999', 'paid-1', 'PENDING', '', 'no such text']
})
afterAll(() => app.close())

test('compiled operations give the data and the errors of general execution', async () => {
  expect(await compareAll(schema, documents)).toBeGreaterThan(documents * 0.75)
})

test('they also agree where resolvers fail, wait, or give null where their type forbids it', async () => {
  expect(await compareAll(faulty(schema), documents)).toBeGreaterThan(documents * 0.75)
})

/** @returns the number of documents that were compared */
async function compareAll(tried: GraphQLSchema, count: number): Promise<number> {
  const random = randomFrom(seed)
  let compared = 0
  for (let n = 0; n < count; n += 1) {
    const made = { ...randomDocument(tried, random, texts), schema: tried }
    const ctx = { ...context, actor: actorFor(random) }
    const first = await executed(made, ctx)
    const compiled = await runCompiled(made, ctx)
    // A value that moves by itself, such as a time, is compared only where two executions agree on it.
    const second = await executed(made, ctx)
    if (!compiled || JSON.stringify(first) !== JSON.stringify(second)) continue
    expect(compiled, `${made.text}\n${JSON.stringify(made.variables)}`).toEqual(first)
    compared += 1
  }
  return compared
}

/** Returns the schema with resolvers that misbehave at some places, always at the same ones. */
function faulty(whole: GraphQLSchema): GraphQLSchema {
  return mapSchema(whole, {
    [MapperKind.OBJECT_FIELD]: (field) => {
      const { resolve = defaultFieldResolver } = field
      const { pothosExposedField: _own, ...extensions } = field.extensions ?? {}
      return {
        ...field,
        extensions,
        resolve: async (source: unknown, args: object, ctx: unknown, info: GraphQLResolveInfo) => {
          const path: (string | number)[] = []
          for (let part: GraphQLResolveInfo['path'] | undefined = info.path; part; part = part.prev)
            path.push(part.key)
          const chance = randomFrom(Buffer.from(hash('sha1', path.join('.'), 'hex')).readInt32BE())()
          if (chance < 0.02) throw new Error(`thrown ${chance}`)
          if (chance < 0.03) return new Error(`returned ${chance}`)
          if (chance < 0.05) return null
          if (chance < 0.15) await setImmediate()
          return resolve(source, args, ctx, info)
        },
      }
    },
  })
}

type Given = RandomDocument & { schema: GraphQLSchema }

async function executed({ schema: tried, text, variables }: Given, contextValue: Context): Promise<unknown> {
  const given = {
    schema: tried,
    document: parse(text),
    variableValues: structuredClone(variables),
    contextValue: { ...contextValue, loaders: new Map() },
  }
  const result = await asMerchant(shop.merchantId, async () => normalizedExecutor(given))
  return comparable(result as ExecutionResult)
}

/** Returns null where the variables do not fit: then general execution refuses them. */
async function runCompiled({ schema: tried, text, variables }: Given, ctx: Context): Promise<unknown> {
  const run = compile(tried, parse(text), undefined)
  if (!run) throw new Error(`Not compiled: ${text}`)
  const own = { ...ctx, loaders: new Map() }
  const result = await asMerchant(shop.merchantId, () => run(variables, own))
  return 'data' in result ? comparable(result) : null
}

/**
 * The data, and the errors as clients see them; errors of different fields come in any order. Where several
 * fields of an object fail the whole object, the result has the first of their errors, and others by chance.
 */
function comparable({ data, errors = [] }: ExecutionResult): unknown {
  const shown = errors.map((error) => {
    const above = nullAbove(data, error.path ?? [])
    return above ?? JSON.stringify(toGraphQLError(error, 'r', context.log))
  })
  return { data: JSON.stringify(data), errors: [...new Set(shown)].toSorted() }
}

/** Returns the place of the null that replaced the object around a field; undefined where it was shown. */
function nullAbove(data: unknown, path: readonly (string | number)[]): string | undefined {
  let value = data
  for (const [depth, key] of path.entries()) {
    if (value == null) return `below ${path.slice(0, depth).join('.')}`
    value = (value as Record<string | number, unknown>)[key]
  }
  return undefined
}

/** Returns the merchant with all scopes, or with some: a type behind `node` then refuses its caller. */
function actorFor(random: () => number): Context['actor'] {
  const { actor } = context
  if (!actor || random() < 0.7) return actor
  return { ...actor, scopes: new Set([...actor.scopes].filter(() => random() < 0.5)) }
}

/** Makes rows of every kind that a merchant can make by itself. */
async function makeRows(): Promise<void> {
  const { token } = shop
  const send = (path: string, body: object) => app.rest('POST', path, { token, body })
  const customer = { amount: 5_000, payment_method: 'OperatorA' }
  for (let n = 1; n <= 4; n += 1) {
    const phone = n % 2 ? '70110000' : '70000001'
    await send('/pay', { ...customer, customer_phone: phone, reference: `paid-${n}` })
    const person = { name: `Awa ${n}`, account: `7000990${n}`, payment_method: 'OperatorA' }
    await send('/beneficiaries', person)
    await send('/payment-links', { title: `Café ${n}`, url_slug: `cafe-${n}` })
    const tomorrow = new Date(Date.now() + 86_400_000)
    await send('/payouts', {
      amount: 1_000,
      beneficiary_id: n,
      reference: `out-${n}`,
      scheduled_at: tomorrow,
    })
    await send('/webhooks', { url: `http://127.0.0.1:9/hook-${n}`, events: ['payment_received'] })
    await send('/team/invite', { name: 'Awa', email: `awa-${n}@example.com` })
    const recipients = Array.from({ length: n }, (_, i) => ({ ...person, name: `Awa ${i}`, amount: 1_000 }))
    await send('/bulk/batches', { title: `Salaries ${n}`, recipients })
  }
}

/** The global ids of the rows. */
async function globalIds(): Promise<string[]> {
  const answer = await app.graphql(
    `{ transactions { nodes { id } } payouts { nodes { id } } beneficiaries { nodes { id } }
       batches { nodes { id recipients { nodes { id } } } } paymentLinks { nodes { id } } }`,
    {},
    shop.token,
  )
  const found = JSON.stringify(answer.body).matchAll(/"id":"([^"]+)"/g)
  return Array.from(found, ([, id]) => String(id))
}
