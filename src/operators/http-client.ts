import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Agent, type Dispatcher, errors } from 'undici'
import { invariant } from '../shared/invariant.ts'
import type { Provider } from '../shared/providers.ts'
import type { CallContext, NotSent, NotSentCause, UnknownCause, Unreachable } from './operator.ts'

/** Choice: a connection that takes longer is an operator in trouble, and nothing was sent yet. */
const connectTimeoutMs = 2_000
/** Rule 7 of the driver contract: a call that starts later could only make doubt. */
const leastBudgetMs = 500
/** Choice: the largest answer of the protocols, except statements, is below 16 KiB. */
const answerMaxBytes = 256 * 1_024
/** How much of a body is kept as a record of what was said. */
const recordMaxChars = 4 * 1_024
/** No operator may push us further away than this. */
const retryAfterMaxMs = 60 * 60 * 1_000

export interface HttpRequest {
  operation: string
  correlationId: string
  method: 'GET' | 'POST' | 'PATCH'
  url: URL
  headers: Readonly<Record<string, string>>
  body?: string | undefined
  /** The bodies carry credentials: none of them is recorded. */
  confidential?: boolean
  answerMaxBytes?: number
}

export interface HttpAnswer {
  kind: 'answered'
  status: number
  headers: Readonly<Record<string, string>>
  body: Buffer
  /** The parsed body; undefined where it is no JSON. */
  json: unknown
  /** SHA-256 (hex) of the body's bytes. */
  digest: string
}

/**
 * `lost` means that the first byte was about to leave and no whole answer came: it may have been executed.
 */
export type HttpResult = HttpAnswer | NotSent | { kind: 'lost'; cause: UnknownCause }

export interface HttpClient {
  /** One exchange, never repeated; every network event is a result, never an exception. */
  send(request: HttpRequest, ctx: CallContext): Promise<HttpResult>
  close(): Promise<void>
}

/**
 * Makes the only way from a driver to its operator: to the given origins and nowhere else, one request per
 * connection at a time, no redirects, no retries, at most `requestsPerSecond` (and a burst of two seconds'
 * worth).
 */
export function createHttpClient(
  provider: Provider,
  origins: readonly string[],
  requestsPerSecond: number,
  now: () => Date,
): HttpClient {
  const allowed = new Set(origins)
  const pace = createPace(requestsPerSecond)
  const agent = new Agent({
    pipelining: 1,
    allowH2: false,
    connect: { timeout: connectTimeoutMs },
    // One deadline over the whole exchange replaces both: they do not see a server that drips.
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  return {
    async send(request, ctx) {
      invariant(
        allowed.has(request.url.origin),
        `operators: ${request.url.origin} is no address of ${provider}`,
      )
      const refused = await waitForTurn(pace, ctx)
      if (refused) return refused
      const at = now()
      const startedAt = performance.now()
      const { result, error } = await exchange(agent, request, ctx)
      ctx.record({
        provider,
        correlationId: request.correlationId,
        operation: request.operation,
        method: request.method,
        path: request.url.pathname + request.url.search,
        status: result.kind === 'answered' ? result.status : null,
        requestBody: recorded(request, request.body),
        responseBody: recorded(
          request,
          result.kind === 'answered' ? result.body.toString('utf8') : undefined,
        ),
        durationMs: Math.round(performance.now() - startedAt),
        error,
        at,
      })
      return result
    },
    close: () => agent.destroy(),
  }
}

/** Milliseconds that `Retry-After` asks for (seconds or a date); undefined where it does not say. */
export function retryAfterMs(headers: Readonly<Record<string, string>>): number | undefined {
  const text = headers['retry-after']
  if (text === undefined) return undefined
  const wait = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - Date.now()
  return Number.isNaN(wait) ? undefined : Math.min(Math.max(wait, 0), retryAfterMaxMs)
}

/** What keeps an answer from telling anything; null for an answer that must be read. */
export function unreachable(result: HttpResult): Unreachable | null {
  if (result.kind === 'not_sent') return { ...result, kind: 'unreachable' }
  if (result.kind === 'lost') return { kind: 'unreachable', cause: result.cause }
  if (result.status === 429) {
    return { kind: 'unreachable', cause: 'rate_limited', retryAfterMs: retryAfterMs(result.headers) }
  }
  return result.status >= 500 ? { kind: 'unreachable', cause: 'http_5xx' } : null
}

/** Milliseconds of a call that may be spent on waiting before it must not be sent any more. */
export function spareMs(ctx: CallContext): number {
  return ctx.deadline.getTime() - Date.now() - leastBudgetMs
}

async function waitForTurn(pace: Pace, ctx: CallContext): Promise<NotSent | null> {
  const late = () => ctx.signal?.aborted === true || spareMs(ctx) < 0
  if (late()) return { kind: 'not_sent', cause: 'deadline_before_send' }
  const waitMs = pace.take(ctx.lane, spareMs(ctx))
  if (waitMs === null) return { kind: 'not_sent', cause: 'rate_limited', retryAfterMs: pace.waitMs(ctx.lane) }
  if (waitMs > 0) await sleep(waitMs, undefined, { ref: false })
  return late() ? { kind: 'not_sent', cause: 'deadline_before_send' } : null
}

async function exchange(
  agent: Agent,
  request: HttpRequest,
  ctx: CallContext,
): Promise<{ result: HttpResult; error?: string | undefined }> {
  const abort = new AbortController()
  const stop = () => abort.abort()
  const timer = setTimeout(stop, ctx.deadline.getTime() - Date.now()).unref()
  ctx.signal?.addEventListener('abort', stop, { once: true })
  const progress = { sent: false, headers: false }
  try {
    const response = await beforeAbort(abort.signal, () =>
      agent.compose(noting(() => (progress.sent = true))).request({
        origin: request.url.origin,
        path: request.url.pathname + request.url.search,
        method: request.method,
        headers: request.headers,
        body: request.body ?? null,
        signal: abort.signal,
      }),
    )
    progress.headers = true
    const body = await readBody(response.body, request.answerMaxBytes ?? answerMaxBytes)
    if (!body) return { result: { kind: 'lost', cause: 'unreadable' }, error: 'the answer is too large' }
    return { result: answer(response.statusCode, response.headers, body) }
  } catch (error) {
    const result: HttpResult = progress.sent
      ? { kind: 'lost', cause: lostBy(error, progress.headers, abort.signal.aborted, ctx) }
      : { kind: 'not_sent', cause: notSentBy(error, abort.signal.aborted) }
    return { result, error: describe(error) }
  } finally {
    clearTimeout(timer)
    ctx.signal?.removeEventListener('abort', stop)
  }
}

/**
 * Tells the moment at which undici begins to write the request. Before it nothing can have been executed,
 * whatever the error is called; after it everything can.
 */
function noting(sent: () => void): Dispatcher.DispatcherComposeInterceptor {
  return (dispatch) => (options, handler) =>
    dispatch(options, {
      onRequestStart(controller, context) {
        handler.onRequestStart?.(controller, context)
        if (!controller.aborted) sent()
      },
      onResponseStart: (...values) => handler.onResponseStart?.(...values),
      onResponseData: (...values) => handler.onResponseData?.(...values),
      onResponseEnd: (...values) => handler.onResponseEnd?.(...values),
      onResponseError: (...values) => handler.onResponseError?.(...values),
    })
}

/**
 * undici notices an abort only once it has a connection; we do not wait for that. It still never sends
 * afterwards.
 */
async function beforeAbort<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const onAbort = () => reject(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([work(), aborted])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

async function readBody(stream: AsyncIterable<Buffer>, maxBytes: number): Promise<Buffer | null> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of stream) {
    size += chunk.length
    if (size > maxBytes) return null
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function answer(status: number, raw: Dispatcher.ResponseData['headers'], body: Buffer): HttpAnswer {
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(raw)) {
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(', ') : value
  }
  return { kind: 'answered', status, headers, body, json: parseJson(body), digest: sha256(body) }
}

/** Parses UTF-8 JSON; undefined where it is none. */
export function parseJson(body: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(body).toString('utf8'))
  } catch {
    return undefined
  }
}

/** SHA-256 in hex. */
export function sha256(bytes: string | Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

function lostBy(error: unknown, inBody: boolean, aborted: boolean, ctx: CallContext): UnknownCause {
  if (ctx.signal?.aborted) return 'deadline'
  if (aborted) return inBody ? 'body_timeout' : 'headers_timeout'
  return error instanceof errors.HTTPParserError ? 'unreadable' : 'response_lost'
}

function notSentBy(error: unknown, aborted: boolean): NotSentCause {
  const code = codeOf(error)
  if (aborted) return 'deadline_before_send'
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'dns'
  return /^ERR_(SSL|TLS|OSSL)|CERT|UNABLE_TO|EPROTO/.test(code) ? 'tls' : 'connect'
}

/**
 * An abort's code is a number, and several addresses that all refuse make one error of many: read both with
 * care.
 */
function codeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null) return ''
  if ('code' in error && typeof error.code === 'string') return error.code
  return 'cause' in error ? codeOf(error.cause) : ''
}

function describe(error: unknown): string {
  const code = codeOf(error)
  return error instanceof Error ? [code, error.message].filter(Boolean).join(' ') : String(error)
}

const secretFields =
  /("[^"]*(?:token|secret|password|\bpin\b|otp|onetimecode|api_?key)[^"]*"\s*:\s*)("(?:[^"\\]|\\.)*"?|\d+)/gi

function recorded(request: HttpRequest, body: string | undefined): string {
  if (body === undefined) return ''
  return request.confidential
    ? '[secret]'
    : body.slice(0, recordMaxChars).replace(secretFields, '$1"[secret]"')
}

interface Pace {
  /**
   * Takes the next turn and says how long to wait for it; null, and nothing taken, where that is longer than
   * `maxMs`.
   */
  take(lane: CallContext['lane'], maxMs: number): number | null
  waitMs(lane: CallContext['lane']): number
}

/** What may leave at once after a pause. Nobody waits for background work: half is kept for who does. */
const burstMs = { interactive: 2_000, background: 1_000 } as const

/** A token bucket as one number: the time at which it would be full again. */
function createPace(perSecond: number): Pace {
  const stepMs = 1_000 / perSecond
  let fullAt = 0
  const waitMs = (lane: CallContext['lane']) =>
    Math.max(0, fullAt + stepMs - burstMs[lane] - performance.now())
  return {
    waitMs,
    take(lane, maxMs) {
      const wait = waitMs(lane)
      if (wait > maxMs) return null
      fullAt = Math.max(fullAt, performance.now()) + stepMs
      return wait
    },
  }
}
