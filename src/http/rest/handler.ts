import type { IncomingMessage } from 'node:http'
import { MapperKind, mapSchema } from '@graphql-tools/utils'
import {
  getNamedType,
  type GraphQLArgumentConfig,
  GraphQLEnumType,
  type GraphQLInputFieldConfig,
  type GraphQLSchema,
  isEnumType,
} from 'graphql'
import type { Context, Services } from '../../context.ts'
import { checkAccess } from '../../graphql/access-plan.ts'
import { toGraphQLError } from '../../graphql/errors.ts'
import { priorityOf } from '../../graphql/priority.ts'
import { checkDocument, execute, prepare, type Prepared } from '../../graphql/compiled.ts'
import { enter, hasRoom, mayAsk, signIn, skip, takesTurn } from '../../enter.ts'
import { DomainError, type FieldProblem, refusals } from '../../shared/errors.ts'
import { challengeOf, type TokenProblem } from '../../shared/challenge.ts'
import { invalidInput } from '../../shared/input.ts'
import { apiVersion } from '../../shared/version.ts'
import {
  anonymousContext,
  type HttpExchange,
  queryOf,
  readBody,
  requestIdOf,
  type RouteRow,
  type Serve,
} from '../request.ts'
import { type WriteAnswer, answerOnce } from '../idempotency.ts'
import { accepted, explained, type RefusalAnswer, refused } from './envelope.ts'
import { restDocument } from './documents.ts'
import { listHeaders } from './list-headers.ts'
import { withMeantName } from './meant-names.ts'
import { answerPreflight, openToPages } from './pages-of-any-origin.ts'
import { checkDryRun, type RestRequest, type RestRoute, withoutNulls } from './route.ts'
import { routes } from './routes.ts'

/** The beginning of every REST path (see docs/design/rules.md#general). */
export const restPrefix = '/merchant/api'

/**
 * Makes the rows of the path table for REST: routes that run the resolvers of GraphQL. The document of each
 * row is parsed, validated and planned at the start. If a row does not fit the schema, the service does not
 * start.
 */
export function restRows(schema: GraphQLSchema): RouteRow[] {
  const spoken = withDatabaseWords(schema)
  const document = checkDocument(spoken, restDocument())
  return [...Map.groupBy(routes, ({ path }) => path)].map(([path, ofPath]) => {
    const methods = new Map(
      ofPath.map((route) => [
        route.method as string,
        sending(serve(route, prepare(spoken, document, route.operation))),
      ]),
    )
    const isOpen = ofPath.some((route) => route.anyOrigin)
    const more = [...(methods.has('GET') ? ['HEAD'] : []), ...(isOpen ? ['OPTIONS'] : [])]
    const allow = [...methods.keys(), ...more].join(', ')
    const notAllowed = sending(async ({ ctx }) => {
      ctx.responseHeaders.set('Allow', allow)
      if (isOpen) openToPages(ctx)
      throw new DomainError('METHOD_NOT_ALLOWED')
    })
    if (isOpen) methods.set('OPTIONS', answerPreflight(allow))
    return { path: `${restPrefix}${path}`, serve: (method) => methods.get(method) ?? notAllowed }
  })
}

/** Makes the handler that runs the work of a row and sends its answer. */
function sending(work: Work): Serve {
  return async (exchange) => {
    const { status, headers, text } = await answerTo(exchange.ctx, () => work(exchange))
    exchange.response.writeHead(status, headers)
    exchange.response.end(text)
  }
}

type Work = (exchange: HttpExchange) => Promise<WriteAnswer>

/** Returns the work of a row of the table. */
function serve(route: RestRoute, prepared: Prepared): Work {
  const kind = route.method === 'GET' ? 'read' : 'write'
  const priority = priorityOf(prepared.plan, kind === 'read' ? 'query' : 'mutation', 0)
  const operation = prepared.plan.rootFields[0] as string
  const isPublic = prepared.plan.demands.length === 0
  const steps = {
    room: hasRoom(priority),
    right: mayAsk((actor) => checkAccess(prepared.plan, actor, {})),
    turn:
      route.hasOwnLimit || route.isUncounted
        ? skip('the operation counts its callers itself, or load balancers ask all the time')
        : takesTurn(kind, route.operation),
  }
  return async ({ ctx, message, params }) => {
    ctx.responseHeaders.set('X-GraphQL-Operation', route.operation)
    if (route.anyOrigin) openToPages(ctx)
    const caller = await enter(ctx, {
      ...steps,
      caller: isPublic
        ? skip('every client may ask, also with a bad token')
        : signIn(message.headers.authorization),
    })
    const request = await readRequest(caller, { route, message, params })
    // An operation with its own limit counts the attempt first, and refuses the body itself.
    if (request.body === null && !route.hasOwnLimit) throw new DomainError('BODY_TOO_LARGE')
    if (kind === 'write') checkDryRun(request, request.query.keys())
    const variables = await readVariables(route, request)
    const run = (once: Context) => runRoute(route, prepared, { variables, request }, once)
    if (kind === 'read') return ctx.admission.run(priority, () => run(caller))
    const key = message.headers['idempotency-key']
    const write = { operation, input: variables, showsSecret: prepared.plan.showsSecret }
    return ctx.admission.run(priority, () =>
      key === undefined ? run(caller) : answerOnce(caller, { key, ...write }, run),
    )
  }
}

/**
 * Makes the answer of a refusal outside of the routes: for an unknown path, a callback or a page that failed.
 * An error that is no refusal is masked and logged.
 */
export function refusalResponse(services: Services, message: IncomingMessage, error: unknown): Response {
  const ctx = anonymousContext(services, message, requestIdOf(message), 'rest')
  const { status, headers, text } = writeRefusal(ctx, error)
  const pairs = headers.flatMap((name, index) => (index % 2 ? [] : [[name, headers[index + 1] ?? '']]))
  return new Response(text, { status, headers: pairs as [string, string][] })
}

/**
 * Returns the same schema and resolvers, but with enum values as the database and REST write them (`pending`,
 * `OperatorA`): after that, only field names differ between REST and GraphQL.
 */
function withDatabaseWords(schema: GraphQLSchema): GraphQLSchema {
  // The tools keep the default of an argument as the name that its enum had before.
  const withDefaultWord = <Config extends GraphQLArgumentConfig | GraphQLInputFieldConfig>(
    config: Config,
  ) => {
    const { defaultValue } = config
    const named = schema.getType(getNamedType(config.type).name)
    if (defaultValue === undefined || !isEnumType(named)) return undefined
    const wordOf = (name: unknown): unknown => named.getValue(String(name))?.value ?? name
    return {
      ...config,
      defaultValue: Array.isArray(defaultValue) ? defaultValue.map(wordOf) : wordOf(defaultValue),
    }
  }
  return mapSchema(schema, {
    [MapperKind.ARGUMENT]: withDefaultWord,
    [MapperKind.INPUT_OBJECT_FIELD]: withDefaultWord,
    [MapperKind.ENUM_TYPE]: (type) => {
      const { values, ...config } = type.toConfig()
      const words = Object.values(values).map((value) => [String(value.value), { ...value }] as const)
      return new GraphQLEnumType({ ...config, values: Object.fromEntries(words) })
    },
  })
}

/** An answer as it is sent: the names and values of its headers alternate. */
interface Written {
  status: number
  headers: string[]
  text: string
}

const fixedHeaders = [
  'Content-Type',
  'application/json; charset=utf-8',
  'Cache-Control',
  'no-store',
  'X-API-Version',
  apiVersion,
]

/** Makes every REST answer, with its envelope and its headers. */
async function answerTo(ctx: Context, work: () => Promise<WriteAnswer>): Promise<Written> {
  try {
    return writeAnswer(ctx, await work())
  } catch (error) {
    return writeRefusal(ctx, error)
  }
}

/** Makes the answer of a refusal. */
export function writeRefusal(ctx: Context, error: unknown): Written {
  return writeAnswer(ctx, refused(replyOf(ctx), refusalFrom(error, ctx)))
}

function writeAnswer(ctx: Context, answer: WriteAnswer): Written {
  const text = JSON.stringify(answer.body)
  const { responseHeaders } = ctx
  // A replayed answer has the request id of the first one.
  if (!responseHeaders.has('X-Request-Id')) responseHeaders.set('X-Request-Id', ctx.requestId)
  const headers = [...fixedHeaders, 'Content-Length', String(Buffer.byteLength(text))]
  for (const [name, value] of responseHeaders) headers.push(name, value)
  return { status: answer.status, headers, text }
}

async function readRequest(
  caller: Context,
  { route, message, params }: Pick<RestRequest, 'params'> & { route: RestRoute; message: IncomingMessage },
): Promise<RestRequest> {
  return {
    params,
    query: queryOf(message),
    headers: message.headers,
    hasDryRun: route.hasDryRun === true,
    ...(route.form
      ? { body: Buffer.alloc(0), form: await route.form(caller, message) }
      : { body: await readBody(message, route.bodyMaxBytes) }),
  }
}

async function readVariables(route: RestRoute, request: RestRequest): Promise<object> {
  try {
    return await route.variables(request)
  } catch (error) {
    if (!(error instanceof DomainError) || !error.detail.problems) throw error
    throw inWordsSent(request, error.detail.problems) ?? error
  }
}

/**
 * Returns the refusal of an input with its problems as the caller can find them: with their places in a file,
 * or with the names that the caller wrote. Null where there is nothing to add.
 */
function inWordsSent({ form, sent }: RestRequest, problems: readonly FieldProblem[]): DomainError | null {
  const found = problems.map((problem) => (form ? form.locate(problem) : withMeantName(sent, problem)))
  return found.every((problem, index) => problem === problems[index]) ? null : invalidInput(found)
}

async function runRoute(
  route: RestRoute,
  prepared: Prepared,
  { variables, request }: { variables: object; request: RestRequest },
  ctx: Context,
): Promise<WriteAnswer> {
  const root = (await execute(prepared, variables, ctx)) as Record<string, unknown> | null
  if (root === null) throw new DomainError('NOT_FOUND')
  const { __typename: _type, ...field } = root
  if ('code' in field) {
    const refusal = refusalFrom(field, ctx)
    const located = refusal.problems ? inWordsSent(request, refusal.problems) : null
    if (located) throw located
    return refused(replyOf(ctx), refusal)
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
  const failed = status < 400 ? {} : { success: false, ...explained('SERVICE_DOWN', ctx.addresses.publicUrl) }
  return { status, body: { ...accepted(ctx.requestId, data), ...failed, ...said } }
}

function replyOf({ requestId, addresses }: Context): { requestId: string; publicUrl: string } {
  return { requestId, publicUrl: addresses.publicUrl }
}

/**
 * Returns a refusal, from a union member of the result, a GraphQL error or a DomainError; any other error is
 * masked.
 */
function refusalFrom(thrown: unknown, ctx: Context): RefusalAnswer {
  const refusal = thrown instanceof Error ? refusalOf(thrown, ctx) : (thrown as MemberAnswer)
  const { initiation, retryAfter, tokenProblem: _told, ...member } = refusal
  const challenge = challengeOf(refusal)
  if (challenge !== null) ctx.responseHeaders.set('WWW-Authenticate', challenge)
  if (retryAfter != null) ctx.responseHeaders.set('Retry-After', String(retryAfter))
  return initiation ? { ...member, data: withoutNulls(initiation) } : member
}

/** A refusal in the form of a result union's member. */
interface MemberAnswer extends RefusalAnswer {
  initiation?: object
  retryAfter?: number | null
  tokenProblem?: TokenProblem | undefined
}

function refusalOf(thrown: Error, ctx: Context): MemberAnswer {
  const { message, extensions } = toGraphQLError(thrown, ctx.requestId, ctx.log)
  const { code, problems, requiredScopes, retryAfter, tokenProblem } = extensions as Partial<MemberAnswer>
  return {
    code: code !== undefined && code in refusals ? code : 'INTERNAL',
    message,
    problems: problems ?? null,
    requiredScopes: requiredScopes ?? null,
    retryAfter: retryAfter ?? null,
    tokenProblem,
  }
}
