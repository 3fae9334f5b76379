import { hash } from 'node:crypto'
import { Agent } from 'undici'
import {
  type Exchanged,
  errorCode,
  exchangeOnce,
  isUnreadable,
  notSentBy,
  retryAfterMs,
} from '../shared/http-exchange.ts'
import { invariant } from '../shared/invariant.ts'
import type { Provider } from '../shared/providers.ts'
import { createRate, type Rate, spareMs } from './call-limits.ts'
import type { CallContext, NotSent, UnknownCause, Unreachable } from './operator.ts'

/** Choice: an operator that needs longer to accept a connection is in trouble, and nothing was sent yet. */
const connectTimeoutMs = 2_000
/** Choice: the largest answer of the protocols, except statements, is below 16 KiB. */
const answerMaxBytes = 256 * 1_024
/** The length up to which a body is kept in the record of an exchange. */
const recordMaxChars = 4 * 1_024
/** The longest pause that an operator's answer can demand. */
const retryAfterMaxMs = 60 * 60 * 1_000

export interface HttpRequest {
  operation: string
  correlationId: string
  method: 'GET' | 'POST' | 'PATCH'
  url: URL
  headers: Readonly<Record<string, string>>
  body?: string | undefined
  /** True if the bodies carry credentials: then they are not recorded. */
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
 * The result of one exchange. `lost` means that sending had begun and no complete answer came: the call may
 * have been executed.
 */
export type HttpResult = HttpAnswer | NotSent | { kind: 'lost'; cause: UnknownCause }

export interface HttpClient {
  /** Makes one exchange, and never repeats it; every network error is a result, never an exception. */
  send(request: HttpRequest, ctx: CallContext): Promise<HttpResult>
  close(): Promise<void>
}

/**
 * Makes the client through which a driver reaches its operator: only at the given origins, one request per
 * connection at a time, no redirects, no retries, at most `requestsPerSecond`. After a pause, the calls of
 * two seconds may leave at once.
 */
export function createHttpClient(
  provider: Provider,
  origins: readonly string[],
  requestsPerSecond: number,
  now: () => Date,
): HttpClient {
  const allowed = new Set(origins)
  const rate = createRate(requestsPerSecond)
  const agent = new Agent({
    pipelining: 1,
    allowH2: false,
    connect: { timeout: connectTimeoutMs },
    // One deadline over the whole exchange replaces both timeouts, because they do not notice a server that
    // sends slowly.
    headersTimeout: 0,
    bodyTimeout: 0,
  })
  return {
    async send(request, ctx) {
      invariant(
        allowed.has(request.url.origin),
        `operators: ${request.url.origin} is no address of ${provider}`,
      )
      const refused = await waitForTurn(rate, ctx)
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

/** Returns why a result tells nothing about an operation; null for an answer that must be read. */
export function unreachable(result: HttpResult): Unreachable | null {
  if (result.kind === 'not_sent') return { ...result, kind: 'unreachable' }
  if (result.kind === 'lost') return { kind: 'unreachable', cause: result.cause }
  if (result.status === 429) {
    return { kind: 'unreachable', cause: 'rate_limited', retryAfterMs: retryAfterOf(result) }
  }
  return result.status >= 500 ? { kind: 'unreachable', cause: 'http_5xx' } : null
}

/** Returns the milliseconds that an answer asks us to wait, at most an hour; undefined if it does not say. */
export function retryAfterOf(answer: HttpAnswer): number | undefined {
  return retryAfterMs(answer.headers, retryAfterMaxMs)
}

async function waitForTurn(rate: Rate, ctx: CallContext): Promise<NotSent | null> {
  const late = () => ctx.signal?.aborted === true || spareMs(ctx) < 0
  if (late()) return { kind: 'not_sent', cause: 'deadline_before_send' }
  const refused = await rate.take(ctx)
  if (refused) return refused
  return late() ? { kind: 'not_sent', cause: 'deadline_before_send' } : null
}

async function exchange(
  agent: Agent,
  request: HttpRequest,
  ctx: CallContext,
): Promise<{ result: HttpResult; error?: string | undefined }> {
  const exchanged = await exchangeOnce(
    agent,
    {
      origin: request.url.origin,
      path: request.url.pathname + request.url.search,
      method: request.method,
      headers: request.headers,
      body: request.body ?? null,
    },
    {
      deadlineMs: ctx.deadline.getTime() - Date.now(),
      maxBytes: request.answerMaxBytes ?? answerMaxBytes,
      signal: ctx.signal,
    },
  )
  if (exchanged.answer && exchanged.end === 'whole')
    return { result: answered(exchanged.answer, exchanged.body) }
  if (exchanged.end === 'cut') {
    return { result: { kind: 'lost', cause: 'unreadable' }, error: 'the answer is too large' }
  }
  const result: HttpResult = exchanged.isSent
    ? { kind: 'lost', cause: lostBy(exchanged) }
    : { kind: 'not_sent', cause: exchanged.stoppedBy ? 'deadline_before_send' : notSentBy(exchanged.error) }
  return { result, error: describe(exchanged.error) }
}

function answered({ status, headers }: NonNullable<Exchanged['answer']>, body: Buffer): HttpAnswer {
  return { kind: 'answered', status, headers, body, json: parseJson(body), digest: sha256(body) }
}

/** Parses UTF-8 JSON; undefined where the bytes are no JSON. */
export function parseJson(body: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(body).toString('utf8'))
  } catch {
    return undefined
  }
}

/** Returns SHA-256 in hex. */
export function sha256(bytes: string | Uint8Array): string {
  return hash('sha256', bytes)
}

function lostBy({ error, answer: head, stoppedBy }: Exchanged): UnknownCause {
  if (stoppedBy === 'caller') return 'deadline'
  if (stoppedBy === 'deadline') return head ? 'body_timeout' : 'headers_timeout'
  return isUnreadable(error) ? 'unreadable' : 'response_lost'
}

function describe(error: unknown): string {
  const code = errorCode(error)
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
