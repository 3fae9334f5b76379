import { type Dispatcher, errors } from 'undici'

/** How one HTTP exchange went: every network event is told, none is thrown. */
export interface Exchanged {
  /** The first byte was about to leave: before it nothing can have been executed, after it everything can. */
  isSent: boolean
  /** Null where no whole head of an answer came. */
  answer: { status: number; headers: Readonly<Record<string, string>> } | null
  /** What was read of the body. */
  body: Buffer
  /** Whether that is all of it, or it was longer than what is read, or it broke off. */
  end: 'whole' | 'cut' | 'broken'
  /** What broke it, or kept it from beginning. */
  error?: unknown
  /** Who ended it early, if we did. */
  stoppedBy: 'deadline' | 'caller' | null
}

/** One request, as undici takes it. */
export type ExchangeRequest = Pick<
  Dispatcher.RequestOptions,
  'origin' | 'path' | 'method' | 'headers' | 'body'
>

export interface ExchangeBounds {
  /** For all of it: a name that is not resolved, a connection that does not stand, a body that drips. */
  deadlineMs: number
  /** A longer body is cut there, and its connection ended. */
  maxBytes: number
  /** Aborted where nobody wants the answer any more. */
  signal?: AbortSignal | undefined
}

/** One exchange, never repeated, no redirects. */
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
 * Tells the moment at which undici begins to write the request. Before it nothing can have been executed,
 * whatever the error is called; after it everything can.
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

/** @returns whether that is the whole body */
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
 * Milliseconds that `Retry-After` asks for (seconds or a date), at most `maxMs`; undefined where it does not
 * say.
 */
export function retryAfterMs(headers: Readonly<Record<string, string>>, maxMs: number): number | undefined {
  const text = headers['retry-after']
  if (text === undefined) return undefined
  const wait = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - Date.now()
  return Number.isNaN(wait) ? undefined : Math.min(Math.max(wait, 0), maxMs)
}

/** What kept a request from being sent. */
export function notSentBy(error: unknown): 'dns' | 'tls' | 'connect' {
  const code = errorCode(error)
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'dns'
  return /^ERR_(SSL|TLS|OSSL)|CERT|UNABLE_TO|EPROTO/.test(code) ? 'tls' : 'connect'
}

/** Whether what came back is no HTTP. */
export function isUnreadable(error: unknown): boolean {
  return error instanceof errors.HTTPParserError
}

/**
 * An abort's code is a number, and several addresses that all refuse make one error of many: read both with
 * care.
 */
export function errorCode(error: unknown): string {
  if (typeof error !== 'object' || error === null) return ''
  if ('code' in error && typeof error.code === 'string') return error.code
  return 'cause' in error ? errorCode(error.cause) : ''
}
