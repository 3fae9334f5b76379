import type { IncomingMessage, ServerResponse } from 'node:http'
import { type ExecutionResult, GraphQLError } from 'graphql'
import { createYoga, type GraphQLParams, type Plugin } from 'graphql-yoga'
import type { Context, Services } from '../context.ts'
import { accessPlan } from '../graphql/access-plan.ts'
import type { FrameStream } from '../graphql/broadcast.ts'
import { toGraphQLError } from '../graphql/errors.ts'
import type { CheckedOperation } from '../graphql/checked-operation.ts'
import { keyedInput } from '../graphql/keyed-input.ts'
import { beforeDocument, checkHasText, type Operations } from '../graphql/operation.ts'
import { enter } from '../enter.ts'
import { challengeOf } from '../shared/challenge.ts'
import { DomainError, refusals } from '../shared/errors.ts'
import { isJson, readJson, readLargeJson } from '../shared/json-body.ts'
import { limits } from '../shared/limits.ts'
import { apiVersion } from '../shared/version.ts'
import { answerOnce } from './idempotency.ts'
import { anonymousContext, queryOf, readBody, requestIdOf } from './request.ts'
import { sendEvents } from './server-sent-events.ts'

/** The state of one request. */
interface GraphqlExchange {
  message: IncomingMessage
  ctx: Context
  /** The stream of frames that answers a subscription; null for any other operation. */
  events: FrameStream | null
}

/**
 * Serves `/graphql` over HTTP as the GraphQL-over-HTTP specification says, and subscriptions as server-sent
 * events. Yoga handles the protocol; `operation.ts` decides what an operation may do and what it returns. The
 * handler accepts JSON only, no batches, and no cross-origin requests; in a sandbox a browser gets GraphiQL.
 */
export function createGraphqlHandler(options: {
  services: Services
  operations: Operations
  isDraining: () => boolean
}): (message: IncomingMessage, response: ServerResponse) => void {
  const { services, operations, isDraining } = options
  const isSandbox = services.config.mode === 'sandbox'
  const yoga = createYoga<GraphqlExchange>({
    plugins: [carryOperations(operations)],
    graphiql: isSandbox && { title: 'GraphiQL', defaultQuery: firstQuery },
    // GraphiQL has nine megabytes, which most processes never need: load it at its first use.
    renderGraphiQL: async (shown) => (await import('@graphql-yoga/render-graphiql')).renderGraphiQL(shown),
    landingPage: false,
    cors: false,
    multipart: false,
    batching: false,
    maxRequestBodySize: false,
    maskedErrors: false,
    parserAndValidationCache: false,
    logging: false,
  })

  async function answer(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const requestId = requestIdOf(message)
    response.setHeader('X-Request-Id', requestId)
    response.setHeader('X-API-Version', apiVersion)
    // An answer belongs to its caller. A stream of events has a `Cache-Control` of its own.
    response.setHeader('Cache-Control', 'no-store')
    const ctx = anonymousContext(services, message, requestId, 'graphql')
    const exchange: GraphqlExchange = { message, ctx, events: null }
    try {
      const answered = await yoga.handleNodeRequest(message, exchange)
      response.setHeaders(exchange.ctx.responseHeaders)
      // GraphiQL may have the session of a person.
      response.setHeader('Content-Security-Policy', "frame-ancestors 'none'")
      response.writeHead(answered.status, Object.fromEntries(answered.headers))
      if (exchange.events) void sendEvents(exchange.events, response, isDraining)
      else response.end(await answered.text())
    } catch (error) {
      exchange.events?.end()
      response.statusCode = 500
      response.setHeader('Content-Type', 'application/json; charset=utf-8')
      response.end(JSON.stringify({ errors: [toGraphQLError(error, requestId, exchange.ctx.log)] }))
    }
  }
  return (message, response) => void answer(message, response).catch(() => response.destroy())
}

/** The first operations that GraphiQL shows. */
const firstQuery = `# Below, under Headers, write your token: { "Authorization": "Bearer ..." }
# 70000300 is a customer of the sandbox who pays after three seconds.

mutation Collect {
  collectPayment(input: { amount: 5000, customerPhone: "70000300", paymentMethod: OperatorA }) {
    ... on PaymentInitiation { reference status }
    ... on Refusal { code message }
  }
}

subscription Follow {
  transactionChanged(after: "0") { sequence reference status amount }
}
`

function carryOperations(operations: Operations): Plugin<GraphqlExchange, GraphqlExchange> {
  /** Runs a mutation; one with an `Idempotency-Key` may have only one root field, and runs once per key. */
  async function mutate(
    operation: CheckedOperation,
    { message, ctx }: GraphqlExchange,
  ): Promise<ExecutionResult> {
    const key = message.headers['idempotency-key']
    if (key === undefined) return operations.run(operation) as Promise<ExecutionResult>
    const { schema, document, operationName } = operation
    const { rootFields, showsSecret } = accessPlan(schema, document, operationName)
    if (rootFields.length !== 1) {
      throw badRequest('An Idempotency-Key belongs to one mutation. Send one mutation per request.')
    }
    const write = {
      key,
      operation: rootFields[0] as string,
      input: await keyedInput(operation),
      showsSecret,
    }
    const { body } = await answerOnce(ctx, write, async (once) => {
      const result = (await operations.run({ ...operation, contextValue: once })) as ExecutionResult
      // An answer with errors is not kept, so that a repetition can get the whole answer.
      return { status: result.errors ? 500 : 200, body: result }
    })
    return body as ExecutionResult
  }

  return {
    async onRequestParse({ request, serverContext, setRequestParser }) {
      checkOrigin(serverContext.message)
      // The caller is checked before the body is read, so that a bad token is reported as such, not as a bad
      // request.
      const { ctx, message } = serverContext
      serverContext.ctx = await enter(ctx, beforeDocument(message.headers.authorization))
      if (request.method === 'GET') setRequestParser(() => paramsOfUrl(message))
      if (request.method === 'POST') setRequestParser(() => paramsOfBody(serverContext))
    },
    onParams({ params: asked, request, context, setParamsHandler }) {
      // Yoga would refuse an absent text before `operations.read` sees the request.
      if (typeof asked === 'object' && asked !== null) checkHasText(asked)
      setParamsHandler(async ({ params }) => {
        const operation = await operations.read(params, context.ctx)
        if (Array.isArray(operation)) return { errors: operation }
        checkTransport(operation.kind, request)
        const result = operation.kind === 'mutation' ? mutate(operation, context) : operations.run(operation)
        return result as ReturnType<Parameters<typeof setParamsHandler>[0]>
      })
    },
    onResultProcess(hook) {
      const { result, serverContext } = hook
      const { ctx } = serverContext
      // The result is the value of `operations.run`: Yoga passes it on unchanged.
      const carried = result as unknown as ExecutionResult | FrameStream
      if ('deliver' in carried) {
        serverContext.events = carried
        return hook.setResultProcessor(
          (_result, { Response }) => new Response(null, { headers: eventHeaders }),
          eventType,
        )
      }
      if (carried.errors) hook.setResult(withStatus(carried, ctx))
    },
  }
}

const eventType = 'text/event-stream'
const eventHeaders = {
  'Content-Type': `${eventType}; charset=utf-8`,
  'Cache-Control': 'no-cache, no-transform',
  // Proxies must pass events on at once.
  'X-Accel-Buffering': 'no',
}

/**
 * Refuses requests from pages of other sites: browsers say from where a request comes. Such a page may still
 * link to the service.
 * @throws GraphQLError BAD_REQUEST
 */
function checkOrigin({ headers }: IncomingMessage): void {
  const { 'sec-fetch-site': site = 'none', 'sec-fetch-mode': mode } = headers
  if (mode !== 'navigate' && site !== 'none' && site !== 'same-origin') {
    throw badRequest('Pages of other sites cannot use this API. Call it from your server.', 403)
  }
}

/** Checks that the HTTP request suits the operation's kind. @throws GraphQLError where it does not */
function checkTransport(kind: string, request: Request): void {
  if (kind === 'mutation' && request.method === 'GET') {
    throw badRequest('A mutation needs a POST request.', 405, { Allow: 'POST' })
  }
  if (kind === 'subscription' && !accepts(request, [eventType])) {
    throw badRequest(
      `A subscription is answered with ${eventType}. Accept that type, or use a WebSocket.`,
      406,
    )
  }
  // This is checked before any of the operation runs: a payment must not be made and then answered with an
  // empty 406.
  if (!accepts(request, answerTypes))
    throw badRequest(`Answers have the type ${answerTypes.join(' or ')}.`, 406)
}

const answerTypes = ['application/graphql-response+json', 'application/json', eventType]

/**
 * Whether a client accepts one of these types, in UTF-8. True only if Yoga, too, finds an accepted type for
 * its answer.
 */
function accepts(request: Request, types: readonly string[]): boolean {
  const accepted = (request.headers.get('accept') || '*/*').toLowerCase().replaceAll(/\s/g, '').split(',')
  return accepted.some((entry) => {
    const [range = '', ...parameters] = entry.split(';')
    const charset = parameters.find((parameter) => parameter.includes('charset='))
    if (charset !== undefined && charset !== 'charset=utf-8') return false
    return types.some((type) => ['*/*', type, `${type.split('/', 1)[0]}/*`].includes(range))
  })
}

async function paramsOfUrl(message: IncomingMessage): Promise<GraphQLParams> {
  const given = await asBadRequest(() => queryOf(message))
  const repeated = ['query', 'operationName', 'variables', 'extensions'].find(
    (name) => given.getAll(name).length > 1,
  )
  if (repeated) throw badRequest(`The parameter ${repeated} occurs more than once.`)
  const json = (name: string) => {
    const text = given.get(name)
    return text ? asBadRequest(() => readJson(Buffer.from(text), `The parameter ${name}`)) : undefined
  }
  return {
    query: given.get('query') ?? undefined,
    operationName: given.get('operationName') ?? undefined,
    variables: await json('variables'),
    extensions: await json('extensions'),
  } as GraphQLParams
}

/**
 * Reads the parameters from the body. A caller with the scope of bulk pay may send a large body, with all
 * recipients in one call. The GraphQL document in it has the usual size limit.
 */
async function paramsOfBody({ message, ctx }: GraphqlExchange): Promise<GraphQLParams> {
  const { 'content-type': type = '', 'content-encoding': encoding } = message.headers
  if (!isJson(type, encoding)) throw refusal('UNSUPPORTED_MEDIA_TYPE')
  const bringsMany = ctx.actor?.scopes.has('bulk_pay') === true
  const body = await readBody(message, bringsMany ? limits.recipientsBodyMaxBytes : limits.bodyMaxBytes)
  if (body === null) throw refusal('BODY_TOO_LARGE')
  const params = await asBadRequest(() => readLargeJson(body))
  if (Array.isArray(params))
    throw badRequest('Batches of operations are not supported. Send one operation per request.')
  const { query } = (params ?? {}) as GraphQLParams
  if (typeof query === 'string' && query.length > limits.bodyMaxBytes) throw refusal('BODY_TOO_LARGE')
  return params as GraphQLParams
}

/** Reads a part of the request. @throws GraphQLError BAD_REQUEST in place of a refusal of the input */
async function asBadRequest<T>(read: () => T | Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    throw error instanceof DomainError ? badRequest(error.message) : error
  }
}

/**
 * Adds the HTTP status to the errors. An operation that ran has 200, with or without errors. An operation
 * that did not run has the status of its first error; for clients that accept only `application/json`,
 * mistakes in the document have 200 as well, as the specification of GraphQL over HTTP recommends.
 */
function withStatus(result: ExecutionResult, ctx: Context): ExecutionResult {
  const { errors = [], ...rest } = result
  const masked = errors.map((error) => {
    const shown = toGraphQLError(error, ctx.requestId, ctx.log)
    if (!('data' in result)) shown.extensions['http'] = statusOf(shown, error.extensions['http'])
    return shown
  })
  const [first] = masked
  if (first && !('data' in result)) setHeaders(first, ctx)
  return { ...rest, errors: masked }
}

/** Sets the headers that explain the error of an operation that did not run. */
function setHeaders({ message, extensions }: GraphQLError, { responseHeaders }: Context): void {
  const { code, retryAfter, tokenProblem } = extensions as Partial<Parameters<typeof challengeOf>[0]> &
    Record<'retryAfter', unknown>
  if (typeof retryAfter === 'number') responseHeaders.set('Retry-After', String(retryAfter))
  const challenge =
    code !== undefined && code in refusals ? challengeOf({ code, message, tokenProblem }) : null
  if (challenge !== null) responseHeaders.set('WWW-Authenticate', challenge)
}

const statuses: Readonly<Record<string, number>> = {
  BAD_REQUEST: 400,
  INTERNAL_SERVER_ERROR: 500,
  DEADLINE_EXCEEDED: 503,
  // As Apollo's server answers: some clients do not read the body of another status.
  PERSISTED_QUERY_NOT_SUPPORTED: 200,
}

/**
 * Returns the HTTP status of an error.
 * @param given the status that the transport decided
 * @returns the status; with `spec: true`, clients that accept only `application/json` get 200 instead
 */
function statusOf({ extensions }: GraphQLError, given: unknown): object {
  if (given) return { ...given, spec: false }
  const code = String(extensions['code'])
  const status = statuses[code] ?? (code in refusals ? refusals[code as keyof typeof refusals].status : null)
  return status === null ? { status: 400, spec: true } : { status }
}

function badRequest(message: string, status = 400, headers: Record<string, string> = {}): GraphQLError {
  return new GraphQLError(message, { extensions: { code: 'BAD_REQUEST', http: { status, headers } } })
}

function refusal(code: 'UNSUPPORTED_MEDIA_TYPE' | 'BODY_TOO_LARGE'): GraphQLError {
  const { status, message } = refusals[code]
  return new GraphQLError(message, { extensions: { code, http: { status } } })
}
