import { Readable } from 'node:stream'
import type { ExecutionResult } from 'graphql'
import type { Context } from '../context.ts'
import type { ResultStream } from '../graphql/operation.ts'

/**
 * How often a silent stream says that it lives, so that proxies keep it; how often it looks whether the
 * service ends.
 */
const pingTicks = 12
const tickMs = 1_000

/** After this time a browser connects again. */
const retryMs = 1_000

/**
 * A subscription as server-sent events, in the form of graphql-sse's distinct connections. It is pulled:
 * while the reader stalls, nothing more is asked of the source. Each event names its cursor as `id`, which
 * comes back as `Last-Event-ID`. The service's end cuts the stream without `complete`, so that clients come
 * back; their end returns the source at once.
 */
export function serverSentEvents(results: ResultStream, ctx: Context, isDraining: () => boolean): Readable {
  let sentId = ctx.lastEventId
  let isPulling = false
  let isOver = false
  let ticks = 0

  async function pull(body: Readable): Promise<void> {
    const text = await nextText()
    isPulling = false
    if (body.destroyed || isOver) return
    body.push(text)
    if (text.endsWith(complete)) end(body)
  }

  async function nextText(): Promise<string> {
    try {
      const result = await results.next()
      if (result.done) return complete
      const isNew = ctx.lastEventId !== sentId
      sentId = ctx.lastEventId
      return `${isNew ? `id: ${sentId}\n` : ''}${eventText(result.value)}`
    } catch (error) {
      return eventText({ errors: [error] } as ExecutionResult) + complete
    }
  }

  /** Nothing may be pushed after the end. */
  function end(body: Readable): void {
    if (!isOver) body.push(null)
    isOver = true
  }

  function leave(): void {
    clearInterval(heart)
    results.return?.().catch(() => {})
  }

  const body = new Readable({
    read() {
      // A ping, too, makes Node ask for more.
      if (isPulling) return
      isPulling = true
      void pull(body)
    },
    destroy(error, callback) {
      leave()
      callback(error)
    },
  })
  const heart = setInterval(() => {
    ticks += 1
    if (isDraining()) end(body)
    else if (!isOver && ticks % pingTicks === 0 && body.readableLength === 0) body.push(':\n\n')
  }, tickMs)
  heart.unref()
  body.push(`retry: ${retryMs}\n\n`)
  return body
}

const complete = 'event: complete\ndata:\n\n'

function eventText(result: ExecutionResult): string {
  return `event: next\ndata: ${JSON.stringify(result)}\n\n`
}
