import type { IncomingMessage, ServerResponse } from 'node:http'
import { type ExecutionResult, GraphQLError, print } from 'graphql'
import { createYoga, type GraphQLParams, type Plugin } from 'graphql-yoga'
import type { Context, Services } from '../context.ts'
import { accessPlan } from '../graphql/access-plan.ts'
import type { FrameStream } from '../graphql/broadcast.ts'
import { toGraphQLError } from '../graphql/errors.ts'
import type { CheckedOperation } from '../graphql/checked-operation.ts'
import { beforeDocument, type Operations } from '../graphql/operation.ts'
import { enter } from '../enter.ts'
import { refusals } from '../shared/errors.ts'
import { limits } from '../shared/limits.ts'
import { apiVersion } from '../shared/version.ts'
import { answerOnce } from './idempotency.ts'
import { anonymousContext, readBody, requestIdOf } from './request.ts'
import { intricacyProblem } from '../shared/input.ts'
import { sendEvents } from './server-sent-events.ts'

/** What belongs to one request. */
interface GraphqlExchange {
  message: IncomingMessage
  ctx: Context
  /** The live answer to a subscription. */
  events: FrameStream | null
}

/**
 * Serves `/graphql` over HTTP as the GraphQL-over-HTTP specification says, and subscriptions as server-sent
 * events. Yoga speaks the protocol; what an operation may do and what it answers is decided in
 * `operation.ts`. JSON only, no batches, no cross-origin requests; in a sandbox a browser gets GraphiQL.
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
    // Nine megabytes that most processes never show.
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
    const ctx = anonymousContext(services, message, requestId, 'graphql')
    const exchange: GraphqlExchange = { message, ctx, events: null }
    try {
      const answered = await yoga.handleNodeRequest(message, exchange)
      response.setHeaders(exchange.ctx.responseHeaders)
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

/** What a newcomer finds in GraphiQL. */
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
  /** A mutation may come with an `Idempotency-Key`; it then does one thing. */
  async function mutate(
    operation: CheckedOperation,
    { message, ctx }: GraphqlExchange,
  ): Promise<ExecutionResult> {
    const key = message.headers['idempotency-key']
    if (key === undefined) return operations.run(operation) as Promise<ExecutionResult>
    const { schema, document, operationName, variableValues } = operation
    const { rootFields, showsSecret } = accessPlan(schema, document, operationName)
    if (rootFields.length !== 1) {
      throw badRequest('An Idempotency-Key belongs to one mutation. Send one mutation per request.')
    }
    const write = {
      key,
      operation: `mutation ${rootFields[0]}`,
      input: { document: print(document), operationName, variableValues },
      showsSecret,
    }
    const { body } = await answerOnce(ctx, write, async (once) => {
      const result = (await operations.run({ ...operation, contextValue: once })) as ExecutionResult
      // Half an answer is not worth keeping: a repeat gets the whole.
      return { status: result.errors ? 500 : 200, body: result }
    })
    return body as ExecutionResult
  }

  return {
    async onRequestParse({ request, serverContext, setRequestParser }) {
      checkOrigin(serverContext.message)
      // Before anything is read, so that a bad token is told apart from a bad request.
      const { ctx, message } = serverContext
      serverContext.ctx = await enter(ctx, beforeDocument(message.headers.authorization))
      if (request.method === 'GET') setRequestParser(() => paramsOfUrl(request.url))
      if (request.method === 'POST') setRequestParser(() => paramsOfBody(serverContext))
    },
    onParams({ request, context, setParamsHandler }) {
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
      // Yoga only carries what `operations.run` gave.
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
  // Proxies must hand events on as they come.
  'X-Accel-Buffering': 'no',
}

/**
 * Browsers say where a request comes from: the page of another site has no business here, though it may link
 * to us.
 * @throws GraphQLError BAD_REQUEST
 */
function checkOrigin({ headers }: IncomingMessage): void {
  const { 'sec-fetch-site': site = 'none', 'sec-fetch-mode': mode } = headers
  if (mode !== 'navigate' && site !== 'none' && site !== 'same-origin') {
    throw badRequest('Pages of other sites cannot use this API. Call it from your server.', 403)
  }
}

/** @throws GraphQLError where this kind of operation does not go over this kind of request */
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
  // Asked before anything runs: a payment must not be made and then answered with an empty 406.
  if (!accepts(request, answerTypes))
    throw badRequest(`Answers have the type ${answerTypes.join(' or ')}.`, 406)
}

const answerTypes = ['application/graphql-response+json', 'application/json', eventType]

/** Whether a client takes one of these types, in UTF-8. Never true where Yoga finds no way to answer. */
function accepts(request: Request, types: readonly string[]): boolean {
  const accepted = (request.headers.get('accept') || '*/*').toLowerCase().replaceAll(/\s/g, '').split(',')
  return accepted.some((entry) => {
    const [range = '', ...parameters] = entry.split(';')
    const charset = parameters.find((parameter) => parameter.includes('charset='))
    if (charset !== undefined && charset !== 'charset=utf-8') return false
    return types.some((type) => ['*/*', type, `${type.split('/', 1)[0]}/*`].includes(range))
  })
}

function paramsOfUrl(url: string): GraphQLParams {
  const given = new URL(url).searchParams
  const json = (name: string) => {
    const text = given.get(name)
    return text ? parseJson(text, `The parameter ${name}`) : undefined
  }
  return {
    query: given.get('query') ?? undefined,
    operationName: given.get('operationName') ?? undefined,
    variables: json('variables'),
    extensions: json('extensions'),
  } as GraphQLParams
}

/** Whoever pays many people brings all of them in one call; documents are as short as everybody's. */
async function paramsOfBody({ message, ctx }: GraphqlExchange): Promise<GraphQLParams> {
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = message.headers
  if (
    !/^application\/(graphql\+)?json\s*(;\s*charset="?utf-8"?\s*)?$/i.test(type) ||
    encoding !== 'identity'
  ) {
    throw refusal('UNSUPPORTED_MEDIA_TYPE')
  }
  const bringsMany = ctx.actor?.scopes.has('bulk_pay') === true
  const body = await readBody(message, bringsMany ? limits.recipientsBodyMaxBytes : limits.bodyMaxBytes)
  if (body === null) throw refusal('BODY_TOO_LARGE')
  const intricacy = intricacyProblem(body)
  if (intricacy !== null) throw badRequest(`${intricacy}.`)
  const params = parseJson(body.toString('utf8'), 'The request body')
  if (Array.isArray(params))
    throw badRequest('Batches of operations are not supported. Send one operation per request.')
  const { query } = (params ?? {}) as GraphQLParams
  if (typeof query === 'string' && query.length > limits.bodyMaxBytes) throw refusal('BODY_TOO_LARGE')
  return params as GraphQLParams
}

function parseJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw badRequest(`${what} is not valid JSON.`)
  }
}

/**
 * Puts the HTTP status beside the errors. An operation that ran is 200 whatever it met. One that did not
 * run has the status of its first error; to clients that accept only `application/json`, mistakes in the
 * document are 200 as well, as the specification of GraphQL over HTTP wishes.
 */
function withStatus(result: ExecutionResult, ctx: Context): ExecutionResult {
  const { errors = [], ...rest } = result
  const masked = errors.map((error) => {
    const shown = toGraphQLError(error, ctx.requestId, ctx.log)
    if (!('data' in result)) shown.extensions['http'] = statusOf(shown, error.extensions['http'])
    return shown
  })
  const retryAfter = masked[0]?.extensions['retryAfter']
  if (!('data' in result) && typeof retryAfter === 'number')
    ctx.responseHeaders.set('Retry-After', String(retryAfter))
  return { ...rest, errors: masked }
}

const statuses: Readonly<Record<string, number>> = {
  BAD_REQUEST: 400,
  INTERNAL_SERVER_ERROR: 500,
  DEADLINE_EXCEEDED: 503,
}

/**
 * @param given what the transport itself decided. @returns `spec` where it yields to the client's media
 *   type
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
