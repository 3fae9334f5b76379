import { type Dispatcher, errors } from 'undici'

/** The result of one HTTP exchange. Every network error is a part of the result; none is thrown. */
export interface Exchanged {
  /** True from just before the first byte leaves. While it is false, the receiver has executed nothing. */
  isSent: boolean
  /** The status and headers of the answer; null if they did not arrive completely. */
  answer: { status: number; headers: Readonly<Record<string, string>> } | null
  /** The part of the answer's body that was read. */
  body: Buffer
  /** Whether the body is whole, was cut at `maxBytes`, or broke off. */
  end: 'whole' | 'cut' | 'broken'
  /** The error that broke the exchange, or kept it from starting. */
  error?: unknown
  /** The reason for which this side stopped the exchange early; null if it did not. */
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

/** Makes one exchange. It is never repeated and follows no redirects. */
export async function exchangeOnce(
  dispatcher: Dispatcher,
  request: ExchangeRequest,
  { deadlineMs, maxBytes, signal }: ExchangeBounds,
): Promise<Exchanged> {
  const result: Exchanged = {
    isSent: false,
    answer: null,
    body: Buffer.alloc(0),
    end: 'broken',
    stoppedBy: null,
  }
  const abort = new AbortController()
  const stop = (by: 'deadline' | 'caller') => {
    result.stoppedBy ??= by
    abort.abort()
  }
  const giveUp = () => stop('caller')
  const timer = setTimeout(stop, deadlineMs, 'deadline').unref()
  signal?.addEventListener('abort', giveUp, { once: true })
  if (signal?.aborted) giveUp()
  const chunks: Buffer[] = []
  try {
    const observed = dispatcher.compose(observing(() => (result.isSent = true)))
    const response = await beforeAbort(abort.signal, () =>
      observed.request({ ...request, signal: abort.signal }),
    )
    result.answer = { status: response.statusCode, headers: flat(response.headers) }
    result.end = (await readInto(chunks, response.body, maxBytes)) ? 'whole' : 'cut'
  } catch (error) {
    result.error = error
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', giveUp)
  }
  result.body = Buffer.concat(chunks)
  return result
}

/**
 * Calls `sent` at the moment at which undici begins to write the request. Before it the receiver cannot have
 * executed anything, for any kind of error; after it, the receiver may have executed the whole request.
 */
function observing(sent: () => void): Dispatcher.DispatcherComposeInterceptor {
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
 * Runs work until an abort. undici notices an abort only after it has a connection, so this function does not
 * wait for undici; undici sends nothing after the abort.
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

/** Reads at most `maxBytes` of a body into `chunks`. @returns whether that is the whole body */
async function readInto(chunks: Buffer[], stream: AsyncIterable<Buffer>, maxBytes: number): Promise<boolean> {
  let left = maxBytes
  for await (const chunk of stream) {
    chunks.push(chunk.subarray(0, left))
    left -= chunk.length
    if (left < 0) return false
  }
  return true
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

/** Returns the step that kept a request from being sent: name resolution, TLS, or the connection. */
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
