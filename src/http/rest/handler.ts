import { readFileSync } from 'node:fs'
import { MapperKind, mapSchema } from '@graphql-tools/utils'
import { type ExecutionResult, GraphQLEnumType, type GraphQLSchema } from 'graphql'
import { Hono } from 'hono'
import type { Context, Services } from '../../context.ts'
import { checkAccess } from '../../graphql/access-plan.ts'
import { toGraphQLError } from '../../graphql/errors.ts'
import { priorityOf } from '../../graphql/priority.ts'
import { execute, parseValid, type Prepared, prepare } from '../../graphql/execute.ts'
import { DomainError, refusals } from '../../shared/errors.ts'
import { apiVersion } from '../../shared/version.ts'
import { anonymousContext, type HttpBindings, readBody, requestIdOf, signIn } from '../request.ts'
import { type Answer, answerOnce } from '../idempotency.ts'
import { accepted, type RefusalAnswer, refused } from './envelope.ts'
import { type Route, routes, withoutNulls } from './routes.ts'
import type { RestRequest } from './shape.ts'

/** Where every REST path begins (specification: General rules). */
export const restPrefix = '/merchant/api'

/**
 * The REST interface: a thin table of routes onto the same resolvers. Each row's document is parsed,
 * validated and planned at the start; a row that does not fit the schema stops it.
 */
export function restRoutes(services: Services, schema: GraphQLSchema): Hono<HttpBindings> {
  const spoken = withDatabaseWords(schema)
  const document = parseValid(spoken, readFileSync(new URL('./documents.graphql', import.meta.url), 'utf8'))
  const app = new Hono<HttpBindings>()
  const methods = new Map<string, string[]>()
  for (const route of routes) {
    const path = restPrefix + route.path.replace(/\{(\w+)\}/g, ':$1')
    const prepared = prepare(spoken, document, route.operation)
    const priority = priorityOf(prepared.plan, route.method === 'GET' ? 'query' : 'mutation', 0)
    methods.set(path, [...(methods.get(path) ?? []), route.method])
    app.on(route.method, path, ({ env: { incoming }, req }) =>
      respond(services, incoming, async (ctx) => {
        ctx.responseHeaders.set('X-GraphQL-Operation', route.operation)
        if (route.anyOrigin) ctx.responseHeaders.set('Access-Control-Allow-Origin', '*')
        // Before anything is done for it; its place it takes when all of it is here.
        ctx.admission.check(priority)
        const caller = await admit(ctx, prepared, incoming.headers.authorization)
        const kind = route.method === 'GET' ? 'read' : 'write'
        if (!route.hasOwnLimit) ctx.requestLimits.takeTurn(caller, kind, route.operation)
        const variables = route.variables(await readRequest(incoming, req.param()))
        const run = (once: Context) => runRoute(route, prepared, variables, once)
        if (route.method === 'GET') return ctx.admission.run(priority, () => run(caller))
        const operation = `${route.method} ${route.path}`
        const write = { message: incoming, operation, input: variables }
        return ctx.admission.run(priority, () => answerOnce(caller, write, run))
      }),
    )
  }
  for (const [path, allowed] of methods) {
    const allow = [...allowed, ...(allowed.includes('GET') ? ['HEAD'] : [])].join(', ')
    app.all(path, ({ env }) =>
      respond(services, env.incoming, async (ctx) => {
        ctx.responseHeaders.set('Allow', allow)
        throw new DomainError('METHOD_NOT_ALLOWED')
      }),
    )
  }
  return app
}

/** What an unknown path answers, wherever it is. */
export function notFound(services: Services, message: Incoming): Promise<Response> {
  return respond(services, message, async () => {
    throw new DomainError('NOT_FOUND')
  })
}

/**
 * The same schema and resolvers, with the enum values in the small letters of the specification: what REST
 * takes and gives is then a matter of names only.
 */
function withDatabaseWords(schema: GraphQLSchema): GraphQLSchema {
  return mapSchema(schema, {
    [MapperKind.ENUM_TYPE]: (type) => {
      const { values, ...config } = type.toConfig()
      const words = Object.values(values).map((value) => [String(value.value), { ...value }] as const)
      return new GraphQLEnumType({ ...config, values: Object.fromEntries(words) })
    },
  })
}

/** Who asks, and may they: before the body is even looked at. */
async function admit(ctx: Context, prepared: Prepared, authorization: string | undefined): Promise<Context> {
  const demandsNothing = prepared.plan.demands.length === 0
  const signedIn = demandsNothing ? ctx : await signIn(ctx, authorization)
  checkAccess(prepared.plan, signedIn.actor, {})
  return signedIn
}

type Incoming = HttpBindings['Bindings']['incoming']

/** Every REST answer leaves here, with its envelope and its headers. */
async function respond(
  services: Services,
  message: Incoming,
  work: (ctx: Context) => Promise<Answer>,
): Promise<Response> {
  const ctx = anonymousContext(services, message, requestIdOf(message))
  let answer: Answer
  try {
    answer = await work(ctx)
  } catch (error) {
    answer = refused(ctx.requestId, refusalFrom(error, ctx))
  }
  return new Response(JSON.stringify(answer.body), {
    status: answer.status,
    headers: {
      'Content-Type': 'application/json; charset=utf-8',
      'Cache-Control': 'no-store',
      'X-Request-Id': ctx.requestId,
      'X-API-Version': apiVersion,
      ...Object.fromEntries(ctx.responseHeaders),
    },
  })
}

async function readRequest(message: Incoming, params: Record<string, string>): Promise<RestRequest> {
  const body = await readBody(message)
  if (body === null) throw new DomainError('BODY_TOO_LARGE')
  return {
    params,
    query: new URL(message.url ?? '/', 'http://localhost').searchParams,
    headers: message.headers,
    body,
  }
}

async function runRoute(route: Route, prepared: Prepared, variables: object, ctx: Context): Promise<Answer> {
  const result = (await execute(prepared, variables, ctx)) as ExecutionResult<Record<string, unknown>>
  const [error] = result.errors ?? []
  if (error) throw error
  const root = Object.values(result.data ?? {})[0] as Record<string, unknown> | null
  if (root === null || root === undefined) throw new DomainError('NOT_FOUND')
  const { __typename: _type, ...field } = root
  if ('code' in field) return refused(ctx.requestId, refusalFrom(field, ctx))
  const data = route.data ? route.data(field as never, variables as never) : field
  const status = route.statusOf?.(field as never) ?? route.status
  if (route.bare) return { status, body: data }
  return { status, body: { ...accepted(ctx.requestId, data), success: status < 400 } }
}

/** A refusal, from a union member of the result, a GraphQL error or a DomainError; a bug is masked. */
function refusalFrom(thrown: unknown, ctx: Context): RefusalAnswer {
  const refusal = thrown instanceof Error ? refusalOf(thrown, ctx) : (thrown as MemberAnswer)
  const { initiation, retryAfter, ...member } = refusal
  if (retryAfter != null) ctx.responseHeaders.set('Retry-After', String(retryAfter))
  return initiation ? { ...member, data: withoutNulls(initiation) } : member
}

/** A refusal as a member of a result union. */
type MemberAnswer = RefusalAnswer & { initiation?: object; retryAfter?: number | null }

function refusalOf(thrown: Error, ctx: Context): MemberAnswer {
  const { message, extensions } = toGraphQLError(thrown, ctx.requestId, ctx.log)
  const { code, problems, requiredScopes, retryAfter } = extensions as Partial<MemberAnswer>
  return {
    code: code !== undefined && code in refusals ? code : 'INTERNAL',
    message,
    problems: problems ?? null,
    requiredScopes: requiredScopes ?? null,
    retryAfter: retryAfter ?? null,
  }
}
