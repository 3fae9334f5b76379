/** Why no answer came. `aborted`: we gave up ourselves, and it says nothing of the receiver. */
export type SendError =
  | 'timeout'
  | 'dns'
  | 'address_refused'
  | 'connect'
  | 'tls'
  | 'reset'
  | 'malformed'
  | 'aborted'

/** What became of one request. */
export interface SendResult {
  /** A 2xx came in time. What the body does after it changes nothing. */
  isDelivered: boolean
  /** Null where no answer came. */
  statusCode: number | null
  /** Null where an answer came. */
  error: SendError | null
  durationMs: number
  /** The beginning of the answer's body, as text that can be stored and shown. */
  answer: string
  /** The IP address that was last connected to for this host; null where it came to none. */
  address: string | null
  /** How long a 429 or a 503 asks us to stay away. */
  retryAfterMs: number | undefined
}

export interface Outgoing {
  url: string
  headers: Readonly<Record<string, string>>
  body: Uint8Array
}

export interface Sender {
  /** One POST, never repeated; every network event is a result, never an exception. */
  send(message: Outgoing, signal?: AbortSignal): Promise<SendResult>
  /** What is under way ends as `aborted`. */
  close(): Promise<void>
}
