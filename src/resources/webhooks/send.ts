import { Agent } from 'undici'
import { LruMap } from '../../shared/lru-map.ts'
import {
  type Exchanged,
  exchangeOnce,
  type ExchangeRequest,
  isUnreadable,
  notSentBy,
  retryAfterMs,
} from '../../shared/http-exchange.ts'
import { limits } from '../../shared/limits.ts'
import type { Outgoing, Sender, SendError, SendResult } from '../../shared/sender.ts'
import {
  AddressRefused,
  type AddressRules,
  guardedConnector,
  NameNotFound,
  readWebhookUrl,
} from './address.ts'

/** Bytes of an answer that are read, and bytes of its beginning that are kept for the merchant to see. */
const webhookAnswerMaxBytes = 64 * 1_024
const webhookAnswerKeptBytes = 2 * 1_024

/** The longest wait, in ms, that a receiver may ask for. Choice: the longest wait of the default schedule. */
const webhookRetryAfterMaxMs = 24 * 3_600_000

/** The options of a sender: allowed addresses, certificates for tests, and the deadline of one exchange. */
export interface SenderOptions extends AddressRules {
  deadlineMs?: number
  /** Certificates (PEM) that are trusted instead of the well-known ones. */
  ca?: string
}

/**
 * The longest time, in ms, to connect. Choice: if the first of several addresses does not answer, there is
 * time left for the request itself.
 */
const connectTimeoutMs = 5_000
/**
 * The time, in ms, for which an idle connection is kept: by default, and at most if the receiver's header
 * `Keep-Alive` allows longer. Choice: a busy endpoint gets its next event sooner. After a longer time, the
 * receiver may close the connection just when the service writes to it.
 */
const keepAliveMs = 1_000
const keepAliveMaxMs = 4_000

/** The most hosts for which the last address is remembered. */
const hostsMax = 5_000

/**
 * Makes the sender, through which every request to a receiver goes. It connects only to allowed addresses,
 * keeps connections while events follow each other, follows no redirects, and has one deadline for the whole
 * exchange.
 */
export function createSender({ deadlineMs, ca, ...rules }: SenderOptions): Sender {
  let isClosed = false
  const addresses = new LruMap<string, string>(hostsMax)
  const options = { allowH2: false, timeout: connectTimeoutMs, ...(ca !== undefined && { ca }) }
  const agent = new Agent({
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: keepAliveMs,
    keepAliveMaxTimeout: keepAliveMaxMs,
    // One deadline for the whole exchange replaces both timeouts, which do not stop a server that sends
    // slowly.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: guardedConnector(rules, options, (origin, address) => addresses.set(origin, address)),
  })
  return {
    async send(message, signal) {
      const startedAt = performance.now()
      const url = readStored(message.url, rules.mode)
      const result = url && (await exchangeOnce(agent, requestTo(url, message), bounds(signal)))
      return {
        ...(result ? read(result, isClosed) : nowhere),
        address: (url && addresses.get(url.origin)) ?? null,
        durationMs: Math.round(performance.now() - startedAt),
      }
    },
    async close() {
      isClosed = true
      await agent.destroy()
    },
  }
  function bounds(signal: AbortSignal | undefined) {
    return {
      deadlineMs: deadlineMs ?? limits.webhookDeadlineMs,
      maxBytes: webhookAnswerMaxBytes,
      signal,
    }
  }
}

/** Parses a stored address; null if it is not allowed now, as after a change from sandbox to production. */
function readStored(text: string, mode: AddressRules['mode']): URL | null {
  try {
    return readWebhookUrl(text, mode)
  } catch (error) {
    if (error instanceof AddressRefused) return null
    throw error
  }
}

function requestTo(url: URL, { headers, body }: Outgoing): ExchangeRequest {
  return { origin: url.origin, path: url.pathname + url.search, method: 'POST', headers, body }
}

type ReadResult = Omit<SendResult, 'address' | 'durationMs'>

const nowhere: ReadResult = {
  isDelivered: false,
  statusCode: null,
  error: 'address_refused',
  answer: '',
  retryAfterMs: undefined,
}

function read(result: Exchanged, isClosed: boolean): ReadResult {
  if (!result.answer) return { ...nowhere, error: causeOf(result, isClosed) }
  const { status, headers } = result.answer
  const asksToWait = status === 429 || status === 503
  return {
    isDelivered: status >= 200 && status < 300,
    statusCode: status,
    error: null,
    answer: safeText(result.body),
    retryAfterMs: asksToWait ? retryAfterMs(headers, webhookRetryAfterMaxMs) : undefined,
  }
}

function causeOf({ isSent, error, stoppedBy }: Exchanged, isClosed: boolean): SendError {
  if (isClosed || stoppedBy === 'caller') return 'aborted'
  if (stoppedBy === 'deadline') return 'timeout'
  if (error instanceof AddressRefused) return 'address_refused'
  if (error instanceof NameNotFound) return 'dns'
  if (!isSent) return notSentBy(error)
  return isUnreadable(error) ? 'malformed' : 'reset'
}

/** Takes the first 2 KiB as text, with whole characters only and without the NUL that PostgreSQL refuses. */
function safeText(body: Buffer): string {
  const kept = body.subarray(0, webhookAnswerKeptBytes)
  const isCut = kept.length < body.length
  return new TextDecoder().decode(kept, { stream: isCut }).replaceAll('\0', '\uFFFD')
}
