import { cacheExchange } from '@urql/exchange-graphcache'
import {
  Client,
  type ExecutionResult,
  fetchExchange,
  subscriptionExchange,
  type SubscriptionForwarder,
} from '@urql/preact'
import type { Client as SocketClient } from 'graphql-ws'
import { possibleTypes } from './operations.ts'

/**
 * Opens the client of the public API. It signs in by the cookie of the session, so that no script holds a
 * token. Its cache keeps each object once, under its type and its `id`.
 */
export function openClient(address: URL): Client {
  return new Client({
    url: address.href,
    preferGetMethod: false,
    fetchOptions: { credentials: 'same-origin' },
    exchanges: [
      cacheExchange({ possibleTypes }),
      fetchExchange,
      subscriptionExchange({ forwardSubscription: forwardOver(socketAddress(address)) }),
    ],
  })
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
    loading ??= import('graphql-ws/client').then(({ createClient }) =>
      createClient({ url, lazy: true, retryAttempts: Number.POSITIVE_INFINITY, shouldRetry: () => true }),
    )
    // The next subscription loads again where the network failed.
    loading.catch(() => (loading = null))
    return loading
  }
  return ({ query = '', variables }) => ({
    subscribe(sink) {
      let hasEnded = false
      let end = () => {}
      load().then(
        (socket) => {
          if (hasEnded) return
          end = socket.subscribe(
            { query, variables: variables as Record<string, unknown> | undefined },
            {
              next: (result) => sink.next(result as ExecutionResult),
              error: (error) => sink.error(error),
              complete: () => sink.complete(),
            },
          )
        },
        (error: unknown) => sink.error(error),
      )
      return {
        unsubscribe() {
          hasEnded = true
          end()
        },
      }
    },
  })
}
