import type { IncomingMessage, ServerResponse } from 'node:http'
import { MapperKind, mapSchema } from '@graphql-tools/utils'
import { GraphQLEnumType, type GraphQLSchema } from 'graphql'
import type { Context, Services } from '../../context.ts'
import { checkAccess } from '../../graphql/access-plan.ts'
import { toGraphQLError } from '../../graphql/errors.ts'
import { priorityOf } from '../../graphql/priority.ts'
import { checkDocument, execute, type Prepared, prepare } from '../../graphql/execute.ts'
import { DomainError, refusals } from '../../shared/errors.ts'
import { invalidInput } from '../../shared/input.ts'
import { apiVersion } from '../../shared/version.ts'
import { anonymousContext, passOver, pathOf, readBody, requestIdOf, signIn } from '../request.ts'
import { type Answer, answerOnce } from '../idempotency.ts'
import { accepted, type RefusalAnswer, refused } from './envelope.ts'
import { restDocument } from './documents.ts'
import { findRoutes } from './find-routes.ts'
import { listHeaders } from './list-headers.ts'
import { type Route, withoutNulls } from './route.ts'
import { routes } from './routes.ts'
import type { RestRequest } from './shape.ts'

/** Where every REST path begins (specification: General rules). */
export const restPrefix = '/merchant/api'

/** Answers a request, or passes on one that is not for this interface. */
export type Door = (message: IncomingMessage, response: ServerResponse) => boolean

/**
 * The REST interface: a thin table of routes onto the same resolvers. Each row's document is parsed,
 * validated and planned at the start; a row that does not fit the schema stops it.
 */
export function openRest(services: Services, schema: GraphQLSchema): Door {
  const spoken = withDatabaseWords(schema)
  const document = checkDocument(spoken, restDocument())
  const find = findRoutes(
    routes.map((route) => [route, serve(route, prepare(spoken, document, route.operation))]),
  )
  return (message, response) => {
    const path = pathOf(message)
    if (path === null || !path.startsWith(`${restPrefix}/`)) return false
    const found = find(path.slice(restPrefix.length))
    if (!found) return false
    const { params, methods } = found
    const method = message.method === 'HEAD' ? 'GET' : (message.method ?? '')
    const work = methods.get(method)
    const answered = answerTo(services, message, async (ctx) => {
      if (work) return work(ctx, message, params)
      const allowed = [...methods.keys(), ...(methods.has('GET') ? ['HEAD'] : [])]
      ctx.responseHeaders.set('Allow', allowed.join(', '))
      throw new DomainError('METHOD_NOT_ALLOWED')
    })
    void answered.then(({ status, headers, text }) => {
      response.writeHead(status, headers)
      response.end(text)
      if (!message.complete) passOver(message)
    })
    return true
  }
}

type Work = (
  ctx: Context,
  message: IncomingMessage,
  params: Readonly<Record<string, string>>,
) => Promise<Answer>

/** What a row of the table does with a request. */
function serve(route: Route, prepared: Prepared): Work {
  const kind = route.method === 'GET' ? 'read' : 'write'
  const priority = priorityOf(prepared.plan, kind === 'read' ? 'query' : 'mutation', 0)
  const operation = `${route.method} ${route.path}`
  return async (ctx, message, params) => {
    ctx.responseHeaders.set('X-GraphQL-Operation', route.operation)
    if (route.anyOrigin) ctx.responseHeaders.set('Access-Control-Allow-Origin', '*')
    // Before anything is done for it; its place it takes when all of it is here.
    ctx.admission.check(priority)
    const caller = await admit(ctx, { route, kind, prepared }, message.headers.authorization)
    const request = await readRequest(caller, { route, message, params })
    // Who counts its callers itself hears of it first.
    if (request.body === null && !route.hasOwnLimit) throw new DomainError('BODY_TOO_LARGE')
    const variables = await readVariables(route, request)
    const run = (once: Context) => runRoute(route, prepared, { variables, request }, once)
    if (kind === 'read') return ctx.admission.run(priority, () => run(caller))
    const { showsSecret } = prepared.plan
    const write = { message, operation, input: variables, showsSecret }
    return ctx.admission.run(priority, () => answerOnce(caller, write, run))
  }
}

/** What an unknown path answers, wherever it is. */
export async function notFound(services: Services, message: IncomingMessage): Promise<Response> {
  const { status, headers, text } = await answerTo(services, message, async () => {
    throw new DomainError('NOT_FOUND')
  })
  const pairs = headers.flatMap((name, place) => (place % 2 ? [] : [[name, headers[place + 1] ?? '']]))
  return new Response(text, { status, headers: pairs as [string, string][] })
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

/**
 * Who asks, may they, and not too often: before the body is even looked at. Whatever comes of it, the answer
 * of a limited route says how many more may come.
 */
async function admit(
  ctx: Context,
  { route, kind, prepared }: { route: Route; kind: 'read' | 'write'; prepared: Prepared },
  authorization: string | undefined,
): Promise<Context> {
  const { requestLimits } = ctx
  const { operation } = route
  const isCounted = !route.hasOwnLimit && !route.isUncounted
  let caller = ctx
  try {
    if (prepared.plan.demands.length > 0) caller = await signIn(ctx, authorization)
    checkAccess(prepared.plan, caller.actor, {})
  } catch (error) {
    if (isCounted) requestLimits.tellTurns(caller, kind, operation)
    throw error
  }
  if (isCounted) await requestLimits.takeTurn(caller, kind, operation)
  return caller
}

/** An answer as it goes out: names and values of its headers in turn. */
interface Written {
  status: number
  headers: string[]
  text: string
}

const alwaysTold = [
  'Content-Type',
  'application/json; charset=utf-8',
  'Cache-Control',
  'no-store',
  'X-API-Version',
  apiVersion,
]

/** Every REST answer leaves here, with its envelope and its headers. */
async function answerTo(
  services: Services,
  message: IncomingMessage,
  work: (ctx: Context) => Promise<Answer>,
): Promise<Written> {
  const ctx = anonymousContext(services, message, requestIdOf(message), 'rest')
  try {
    return writeAnswer(ctx, await work(ctx))
  } catch (error) {
    return writeRefusal(ctx, error)
  }
}

/** What is told instead of what was asked for. */
export function writeRefusal(ctx: Context, error: unknown): Written {
  return writeAnswer(ctx, refused(ctx.requestId, refusalFrom(error, ctx)))
}

function writeAnswer(ctx: Context, answer: Answer): Written {
  const text = JSON.stringify(answer.body)
  const { responseHeaders } = ctx
  // An answer that is repeated has the id of the first.
  if (!responseHeaders.has('X-Request-Id')) responseHeaders.set('X-Request-Id', ctx.requestId)
  const headers = [...alwaysTold, 'Content-Length', String(Buffer.byteLength(text))]
  for (const [name, value] of responseHeaders) headers.push(name, value)
  return { status: answer.status, headers, text }
}

async function readRequest(
  caller: Context,
  { route, message, params }: Pick<RestRequest, 'params'> & { route: Route; message: IncomingMessage },
): Promise<RestRequest> {
  return {
    params,
    query: new URL(message.url ?? '/', 'http://localhost').searchParams,
    headers: message.headers,
    ...(route.form
      ? { body: Buffer.alloc(0), form: await route.form(caller, message) }
      : { body: await readBody(message, route.bodyMaxBytes) }),
  }
}

async function readVariables(route: Route, request: RestRequest): Promise<object> {
  try {
    return await route.variables(request)
  } catch (error) {
    if (!request.form || !(error instanceof DomainError) || !error.detail.problems) throw error
    throw invalidInput(error.detail.problems.map(request.form.place))
  }
}

async function runRoute(
  route: Route,
  prepared: Prepared,
  { variables, request }: { variables: object; request: RestRequest },
  ctx: Context,
): Promise<Answer> {
  const root = (await execute(prepared, variables, ctx)) as Record<string, unknown> | null
  if (root === null) throw new DomainError('NOT_FOUND')
  const { __typename: _type, ...field } = root
  if ('code' in field) {
    const refusal = refusalFrom(field, ctx)
    if (request.form && refusal.problems) throw invalidInput(refusal.problems.map(request.form.place))
    return refused(ctx.requestId, refusal)
  }
  if (route.list) {
    const path = route.path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => request.params[name] ?? '')
    const address = `${ctx.addresses.publicUrl}${restPrefix}${path}`
    const page = route.list(field as never, variables as never)
    for (const [name, value] of listHeaders(address, request.query, page))
      ctx.responseHeaders.set(name, value)
  }
  const location = route.location?.(field as never) ?? null
  if (location !== null) ctx.responseHeaders.set('Location', `${restPrefix}${location}`)
  const data = route.data ? route.data(field as never, variables as never, request) : field
  const status = route.statusOf?.(field as never, variables as never) ?? route.status
  if (route.bare) return { status, body: data }
  const message = route.message?.(field as never, variables as never) ?? null
  const said = { ...(message !== null && { message }) }
  return { status, body: { ...accepted(ctx.requestId, data), success: status < 400, ...said } }
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
