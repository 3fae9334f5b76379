/**
 * The reason for which no answer came. `aborted`: this side stopped waiting, which says nothing about the
 * receiver.
 */
export type SendError =
  | 'timeout'
  | 'dns'
  | 'address_refused'
  | 'connect'
  | 'tls'
  | 'reset'
  | 'malformed'
  | 'aborted'

export interface SendResult {
  /** True if a 2xx came in time, even if the body broke off after it. */
  isDelivered: boolean
  /** Null if no answer came. */
  statusCode: number | null
  /** Null if an answer came. */
  error: SendError | null
  durationMs: number
  /** The beginning of the answer's body, as text that can be stored and shown. */
  answer: string
  /** The IP address of the last connection to this host; null if there was none. */
  address: string | null
  /** The milliseconds that a 429 or a 503 asks the sender to wait. */
  retryAfterMs: number | undefined
}

export interface Outgoing {
  url: string
  headers: Readonly<Record<string, string>>
  body: Uint8Array
}

export interface Sender {
  /** Sends one POST, and never repeats it. Every network error is a result, never an exception. */
  send(message: Outgoing, signal?: AbortSignal): Promise<SendResult>
  /** Closes the sender. Requests that are under way end as `aborted`. */
  close(): Promise<void>
}
