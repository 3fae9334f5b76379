import { type Client, createClient } from 'graphql-ws/client'
import { setLive } from './live.ts'
import { doubtSession } from './session.ts'

/** The pause after which the client asks whether the connection still lives, and the time for the answer. */
const askEveryMs = 12_000
const answerMs = 6_000

/** The code with which the service closes a socket whose session has ended, or was none. */
const forbidden = 4403

/** The longest pause before the client connects again. */
const pauseMsMax = 10_000

/**
 * Opens the client of subscriptions. It connects with the first one, says whether changes arrive, and
 * connects again for ever: at once when the network is back, and also where a connection died without a word,
 * as when a telephone changes its network.
 */
export function openSocket(url: string): Client {
  let silence: ReturnType<typeof setTimeout> | undefined
  const client = createClient({
    url,
    lazy: true,
    keepAlive: askEveryMs,
    retryAttempts: Number.POSITIVE_INFINITY,
    shouldRetry: () => true,
    retryWait: pause,
    on: {
      connected: () => setLive(true),
      closed(event) {
        setLive(false)
        // The service closes so when the session of the socket ends.
        if ((event as CloseEvent).code === forbidden) doubtSession()
      },
      ping(isFromServer) {
        if (!isFromServer) silence = setTimeout(() => client.terminate(), answerMs)
      },
      pong(isFromServer) {
        if (isFromServer) clearTimeout(silence)
      },
    },
  })
  addEventListener('offline', () => client.terminate())
  return client
}

/** Waits before the next try: longer after each failure, and until the network is back where it is away. */
function pause(failures: number): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer)
      removeEventListener('online', end)
      resolve()
    }
    const timer = setTimeout(() => navigator.onLine && end(), Math.min(500 * 2 ** failures, pauseMsMax))
    addEventListener('online', end)
  })
}
