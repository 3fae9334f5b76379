import { cacheExchange } from '@urql/exchange-graphcache'
import {
  Client,
  type ExecutionResult,
  fetchExchange,
  mapExchange,
  type OperationResult,
  subscriptionExchange,
  type SubscriptionForwarder,
} from '@urql/preact'
import type { Client as SocketClient } from 'graphql-ws'
import { possibleTypes } from './operations.ts'
import { codeOf } from './refusals.ts'
import { doubtSession, sessionHeaders } from './session.ts'

/**
 * Opens the client of the public API. It signs in by the cookie of the session, so that no script holds a
 * token. Its cache keeps each object once, under its type and its `id`.
 */
export function openClient(address: URL): Client {
  return new Client({
    url: address.href,
    preferGetMethod: false,
    fetchOptions: () => ({ ...sameOrigin, headers: sessionHeaders() }),
    fetch: fetchInTime,
    exchanges: [
      cacheExchange({ possibleTypes }),
      mapExchange({ onResult: noticeStranger }),
      fetchExchange,
      subscriptionExchange({ forwardSubscription: forwardOver(socketAddress(address)) }),
    ],
  })
}

/** The longest wait for an answer: a person should not look at a page that waits for ever. */
const answerMsMax = 30_000

/** Fetches, and gives up where no answer comes. */
const fetchInTime: typeof fetch = (input, init) => {
  const signals = [AbortSignal.timeout(answerMsMax), ...(init?.signal ? [init.signal] : [])]
  return fetch(input, { ...init, signal: AbortSignal.any(signals) })
}

const sameOrigin = { credentials: 'same-origin' } as const

/** The context of the session query, whose answer is about any member that the cookie names. */
export const anyMember = { fetchOptions: sameOrigin }

/**
 * Makes the context of a write that the service carries out once per key, also where its answer was lost and
 * it is sent again.
 */
export function onceUnder(key: string) {
  return { fetchOptions: { ...sameOrigin, headers: { ...sessionHeaders(), 'Idempotency-Key': key } } }
}

/** Doubts the session of the page where the service takes the caller for a stranger. */
function noticeStranger({ operation, error }: OperationResult): void {
  const names = operation.query.definitions.map((one) => ('name' in one ? one.name?.value : undefined))
  // This query asks whether there is a session.
  if (codeOf(error) === 'UNAUTHENTICATED' && !names.includes('SessionQuery')) doubtSession()
}

function socketAddress(address: URL): string {
  const socket = new URL(address)
  socket.protocol = address.protocol.replace('http', 'ws')
  return socket.href
}

/** Forwards subscriptions over one WebSocket, whose client loads when the first subscription begins. */
function forwardOver(url: string): SubscriptionForwarder {
  let loading: Promise<SocketClient> | null = null
  const load = () => {
    loading ??= import('./socket.ts').then(({ openSocket }) => openSocket(url))
    // The next subscription loads again where the network failed.
    loading.catch(() => (loading = null))
    return loading
  }
  return ({ query = '', variables }) => ({
    subscribe(sink) {
      // After a break the client sends this payload again: the changes go on from the last one that came.
      const payload = { query, variables: { ...(variables as Record<string, unknown> | undefined) } }
      let hasEnded = false
      let end = () => {}
      const begin = async () => {
        const socket = await load()
        if (hasEnded) return
        end = socket.subscribe(payload, {
          next: (result) => {
            payload.variables['after'] = cursorOf(result.data) ?? payload.variables['after']
            sink.next(result as ExecutionResult)
          },
          error: beginAgain,
          complete: () => sink.complete(),
        })
      }
      /** A refusal may be the end of the session; else the service may admit the subscription later. */
      const beginAgain = () => {
        doubtSession()
        const timer = setTimeout(start, refusedPauseMs)
        end = () => clearTimeout(timer)
      }
      const start = () => void begin().catch(beginAgain)
      start()
      return {
        unsubscribe() {
          hasEnded = true
          end()
        },
      }
    },
  })
}

/** The pause before a subscription that was refused is tried again. */
const refusedPauseMs = 10_000

/** The cursor of a change; null where its subscription did not select it. */
function cursorOf(data: Record<string, unknown> | null | undefined): string | null {
  const [change] = Object.values(data ?? {})
  const cursor = (change as { cursor?: unknown } | null | undefined)?.cursor
  return typeof cursor === 'string' ? cursor : null
}
