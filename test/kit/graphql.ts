import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buildSchema, type GraphQLObjectType, type GraphQLSchema } from 'graphql'
import type pg from 'pg'
import { afterAll, beforeAll } from 'vitest'
import { openAdmission } from '../../src/limits/admission.ts'
import type { Actor } from '../../src/identity/callers/actor.ts'
import { CredentialWatch } from '../../src/identity/callers/credentials.ts'
import { createRequestLimits, type RequestLimits } from '../../src/limits/request-limits.ts'
import type { Scope } from '../../src/identity/callers/scopes.ts'
import type { Context, Services } from '../../src/context.ts'
import type { AccessRule } from '../../src/graphql/access-plan.ts'
import { type EventLog, liveStream, readCursor } from '../../src/graphql/live-stream.ts'
import { DomainError } from '../../src/shared/errors.ts'
import { createLog } from '../../src/telemetry/log.ts'

// A small schema with every kind of rule, and the few services that a transport needs: no database.

const sdl = /* GraphQL */ `
  directive @checkpoints on SUBSCRIPTION
  type Query {
    hello(name: String): String!
    me: Merchant!
    secret: String!
    slow: String!
    fails: String!
    refuses: String
    batches(first: Int, last: Int): BatchConnection!
    nodes(ids: [ID!]!): [Batch]!
  }
  type Merchant { name: String!, parent: Merchant, batches(first: Int, last: Int): BatchConnection! }
  type BatchConnection { edges: [BatchEdge!]!, nodes: [Batch!]!, pageInfo: PageInfo!, totalCount: Int! }
  type BatchEdge { cursor: String!, node: Batch! }
  type PageInfo { hasNextPage: Boolean! }
  type Batch { id: ID!, recipients(first: Int, last: Int): BatchConnection! }
  type Mutation { pay(amount: Int!): String, greet: String }
  type Subscription { ticks(after: String, every: Int, of: ID): Tick!, broken: Tick! }
  type Tick { n: Int!, padding: String! }
`

const rules: Record<string, AccessRule> = {
  'Query.hello': 'public',
  'Query.slow': 'public',
  'Query.fails': 'public',
  'Query.refuses': 'public',
  'Query.batches': 'public',
  'Query.nodes': 'public',
  'Query.me': 'authenticated',
  'Query.secret': ['pay'],
  'Mutation.pay': ['pay'],
  'Mutation.greet': 'public',
  'Subscription.ticks': ['balance'],
  'Subscription.broken': 'authenticated',
}

/** The log that the subscription `ticks` reads: 1, 2, 3, … up to `head`. */
export class Ticks {
  head = 0
  /** How many events were pulled. */
  pulled = 0
  /** How many sources run. */
  open = 0
  paddingBytes = 0
  #failure: Error | null = null
  readonly #waiting = new Set<() => void>()

  advance(to: number): void {
    this.head = to
    for (const notify of this.#waiting) notify()
  }

  /** Makes waiting readers fail with this error. */
  fail(error: Error): void {
    this.#failure = error
    this.advance(this.head)
    this.#failure = null
  }

  async *after(cursor: number, signal: AbortSignal): AsyncGenerator<{ n: number; padding: string }> {
    this.open += 1
    try {
      for (let n = cursor + 1; !signal.aborted; ) {
        if (n > this.head) await this.#change(signal)
        else {
          this.pulled += 1
          yield { n, padding: 'x'.repeat(this.paddingBytes) }
          n += 1
        }
      }
    } finally {
      this.open -= 1
    }
  }

  #change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const notify = () => {
        this.#waiting.delete(notify)
        if (this.#failure) reject(this.#failure)
        else resolve()
      }
      this.#waiting.add(notify)
      signal.addEventListener('abort', notify, { once: true })
    })
  }
}

export interface GraphqlFixture {
  schema: GraphQLSchema
  services: Services
  ticks: Ticks
  /** The amounts that `pay` moved. */
  paid: number[]
  /** Makes a token. */
  issue(more?: { scopes?: readonly Scope[]; expiresInMs?: number; merchantId?: number }): string
  /** Revokes a token; each stream notices within a second. */
  revoke(token: string): void
  close(): void
}

export function createFixture(mode: 'sandbox' | 'production'): GraphqlFixture {
  const ticks = new Ticks()
  const paid: number[] = []
  const actors = new Map<string, Actor>()
  const revoked = new Set<number>()
  const log = createLog('silent')
  const query = ({ values: [ids] }: { values: [number[]] }) =>
    Promise.resolve({
      rows: ids.map((id) => ({
        id,
        merchantId: actors.get(`token-${id}`)?.merchantId ?? 1,
        version: 1,
        isRevoked: revoked.has(id),
        isMerchantActive: true,
        memberId: null,
        role: null,
        lastUsedAt: null,
        whitelist: [],
      })),
    })
  const credentials = new CredentialWatch({ query } as unknown as pg.Pool, log)
  const verifyToken = (token: string) => {
    const actor = actors.get(token)
    if (actor && actor.expiresAt.getTime() > Date.now()) return Promise.resolve(actor)
    return Promise.reject(new DomainError('UNAUTHENTICATED'))
  }
  const lastUses = { record: () => {} }
  const blocked = lastUses
  const access = { tokens: { verifyToken }, credentials, lastUses, blocked, isTrustedProxy: () => false }
  const services = {
    config: { mode },
    log,
    access,
    admission: openAdmission(10_000, async () => {}),
    requestLimits: testLimits(),
    streams: new Map(),
  } as unknown as Services
  return {
    schema: makeSchema(ticks, paid),
    services,
    ticks,
    paid,
    issue(more: { scopes?: readonly Scope[]; expiresInMs?: number; merchantId?: number } = {}) {
      const { scopes = ['balance', 'pay'], expiresInMs = 3_600_000, merchantId = 1 } = more
      const id = actors.size + 1
      const expiresAt = new Date(Date.now() + expiresInMs)
      const key = {
        merchantId,
        apiKeyId: id,
        apiKeyVersion: 1,
        memberId: null,
        role: null,
        readsOnly: false,
        keyLimits: null,
      }
      actors.set(`token-${id}`, { ...key, tokenId: `t${id}`, scopes: new Set<Scope>(scopes), expiresAt })
      return `token-${id}`
    },
    revoke: (token) => void revoked.add(actors.get(token)?.apiKeyId ?? 0),
    close: () => credentials.close(),
  }
}

/** The general limits as in production, but for the number of requests. */
export function testLimits(objectsPerMinute = 100_000): RequestLimits {
  const many = 1_000_000
  const pace = { writesPerSecond: many, readsPerSecond: many, publicPerMinute: many, objectsPerMinute }
  // Without a database each process counts for itself.
  const pool = { query: () => Promise.reject(new Error('no database')) }
  return createRequestLimits(pace, { pool, log: createLog('silent') })
}

/**
 * Serves for one test file.
 * @param attach attaches the handler to the server, and returns a function that closes it
 */
export function serve(
  attach: (server: Server, fixture: GraphqlFixture) => () => Promise<void> | void,
  mode: 'sandbox' | 'production' = 'sandbox',
): { url: () => string; fixture: GraphqlFixture } {
  const fixture = createFixture(mode)
  const server = createServer()
  const close = attach(server, fixture)
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  })
  afterAll(async () => {
    await close()
    fixture.close()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return { url: () => `http://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`, fixture }
}

function makeSchema(ticks: Ticks, paid: number[]): GraphQLSchema {
  const schema = buildSchema(sdl)
  const batch = { id: '1' }
  const resolvers: Record<string, (args: never, ctx: Context) => unknown> = {
    'Query.hello': ({ name }: { name?: string }, ctx) => {
      ctx.responseHeaders.set('X-Greeted', name ?? 'world')
      return `hello ${name ?? 'world'}`
    },
    'Query.me': () => ({ name: 'Shop', parent: { name: 'Mall' } }),
    'Query.secret': () => 'secret',
    'Query.slow': () => new Promise(() => {}),
    'Query.fails': () => Promise.reject(new Error('password=hunter2')),
    'Query.refuses': () => Promise.reject(new DomainError('NOT_FOUND')),
    'Query.batches': () => ({ edges: [], nodes: [batch], pageInfo: { hasNextPage: false }, totalCount: 1 }),
    'Query.nodes': ({ ids }: { ids: string[] }) => ids.map((id) => ({ id })),
    'Mutation.pay': ({ amount }: { amount: number }) => `paid ${paid.push(amount)}`,
    'Mutation.greet': () => 'hello',
  }
  for (const type of [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()]) {
    for (const field of Object.values((type as GraphQLObjectType).getFields())) {
      const coordinate = `${type?.name}.${field.name}`
      field.extensions = { accessRule: rules[coordinate], movesMoney: coordinate === 'Mutation.pay' }
      const resolve = resolvers[coordinate]
      if (resolve) field.resolve = (_root, args, ctx) => resolve(args as never, ctx as Context)
    }
  }
  const { ticks: field, broken } = (schema.getSubscriptionType() as GraphQLObjectType).getFields()
  if (!field || !broken) throw new Error('the schema lacks its subscriptions')
  field.subscribe = (_root, { after, every, of }: TicksArgs, ctx: Context) =>
    liveStream(ctx, {
      ...logOf(ticks, readCursor(after, ctx)?.toString() ?? null),
      ...(every && { wants: ({ n }) => n % every === 0 }),
      ...(of && { subject: of }),
    })
  field.resolve = (tick) => tick
  broken.subscribe = (_root, _args, ctx: Context) =>
    liveStream(ctx, { after: 0n, head: 0n, read: breaks, positionOf: () => 0n })
  return schema
}

/** `every`: only each so manieth tick is wanted; `of`: the object that the stream follows. */
interface TicksArgs {
  after?: string | null
  every?: number | null
  of?: string | null
}

export function logOf(ticks: Ticks, after: string | null): EventLog<{ n: number }> {
  const head = BigInt(ticks.head)
  return {
    after: after === null ? head : BigInt(after),
    head,
    read: (from, signal) => ticks.after(Number(from), signal),
    positionOf: ({ n }) => BigInt(n),
  }
}

/** Fails before its first event. */
const breaks = () => ({
  [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(new Error('password=hunter2')) }),
})
