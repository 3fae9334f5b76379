import { type Dispatcher, errors } from 'undici'

/** The result of one HTTP exchange. Every network error is a part of the result; none is thrown. */
export interface Exchanged {
  /** True from just before the first byte leaves. While it is false, the receiver has executed nothing. */
  isSent: boolean
  /** The status and headers of the answer; null if they did not arrive completely. */
  answer: { status: number; headers: Readonly<Record<string, string>> } | null
  /** The part of the answer's body that was read. */
  body: Buffer
  /** Whether the body is whole, was cut at `maxBytes`, or did not arrive completely. */
  end: 'whole' | 'cut' | 'broken'
  /** The error that broke the exchange, or kept it from starting. */
  error?: unknown
  /** The reason for which this side stopped the exchange; null if it did not, or only cut the body. */
  stoppedBy: 'deadline' | 'caller' | null
}

/** A request in the form that undici takes. */
export type ExchangeRequest = Pick<
  Dispatcher.RequestOptions,
  'origin' | 'path' | 'method' | 'headers' | 'body'
>

export interface ExchangeBounds {
  /** The time for the whole exchange: resolving the name, connecting, and reading a slow body. */
  deadlineMs: number
  /** The longest body that is read. A longer body is cut there, and its connection is closed. */
  maxBytes: number
  /** Aborted when the caller no longer wants the answer. */
  signal?: AbortSignal | undefined
}

const aborted = new DOMException('The exchange was stopped by this side', 'AbortError')

/**
 * Makes one exchange. It is never repeated and follows no redirects. The function uses undici's `dispatch`,
 * because undici's `request` makes a stream of each body and so takes 50% more processor time.
 */
export function exchangeOnce(
  dispatcher: Dispatcher,
  request: ExchangeRequest,
  { deadlineMs, maxBytes, signal }: ExchangeBounds,
): Promise<Exchanged> {
  const { promise, resolve } = Promise.withResolvers<Exchanged>()
  const result: Exchanged = {
    isSent: false,
    answer: null,
    body: Buffer.alloc(0),
    end: 'broken',
    stoppedBy: null,
  }
  const chunks: Buffer[] = []
  let left = maxBytes
  let isOver = false
  let connection: Dispatcher.DispatchController | null = null
  const finish = () => {
    isOver = true
    clearTimeout(timer)
    signal?.removeEventListener('abort', giveUp)
    result.body = Buffer.concat(chunks)
    resolve(result)
  }
  const fail = (error: unknown) => {
    if (isOver) return
    result.error = error
    finish()
  }
  // undici notices an abort only after it has a connection, so the result does not wait for undici.
  const stop = (by: 'deadline' | 'caller') => {
    result.stoppedBy = by
    fail(aborted)
    connection?.abort(aborted)
  }
  const giveUp = () => stop('caller')
  const timer = setTimeout(stop, deadlineMs, 'deadline').unref()
  signal?.addEventListener('abort', giveUp, { once: true })
  if (signal?.aborted) giveUp()
  const handler: Dispatcher.DispatchHandler = {
    // Before this moment the receiver cannot have executed anything, for any kind of error. After it, the
    // receiver may have executed the whole request.
    onRequestStart(controller) {
      if (isOver) return controller.abort(aborted)
      connection = controller
      result.isSent = true
    },
    onResponseStart(_, status, headers) {
      if (!isOver && status >= 200) result.answer = { status, headers: flat(headers) }
    },
    onResponseData(controller, chunk) {
      if (isOver) return
      chunks.push(chunk.subarray(0, left))
      left -= chunk.length
      if (left >= 0) return
      result.end = 'cut'
      finish()
      controller.abort(aborted)
    },
    onResponseEnd() {
      if (isOver) return
      result.end = 'whole'
      finish()
    },
    onResponseError: (_, error) => fail(error),
  }
  if (!isOver) dispatcher.dispatch(request, handler)
  return promise
}

function flat(raw: Dispatcher.ResponseData['headers']): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(raw)) {
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(', ') : value
  }
  return headers
}

/**
 * Returns the milliseconds that `Retry-After` asks for (in seconds or as a date), at most `maxMs`; undefined
 * if the header is absent or unreadable.
 */
export function retryAfterMs(headers: Readonly<Record<string, string>>, maxMs: number): number | undefined {
  const text = headers['retry-after']
  if (text === undefined) return undefined
  const wait = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - Date.now()
  return Number.isNaN(wait) ? undefined : Math.min(Math.max(wait, 0), maxMs)
}

/** Returns the step that failed before the request was sent: name resolution, TLS, or the connection. */
export function notSentBy(error: unknown): 'dns' | 'tls' | 'connect' {
  const code = errorCode(error)
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'dns'
  return /^ERR_(SSL|TLS|OSSL)|CERT|UNABLE_TO|EPROTO/.test(code) ? 'tls' : 'connect'
}

/** Whether the answer was not valid HTTP. */
export function isUnreadable(error: unknown): boolean {
  return error instanceof errors.HTTPParserError
}

/**
 * Returns the code of an error, or else of its cause; '' if neither has a code that is text. The code of an
 * abort is a number, which does not count.
 */
export function errorCode(error: unknown): string {
  if (typeof error !== 'object' || error === null) return ''
  if ('code' in error && typeof error.code === 'string') return error.code
  return 'cause' in error ? errorCode(error.cause) : ''
}
