import type { ServerResponse } from 'node:http'
import type { Frame, FrameStream, Outlet } from '../graphql/broadcast.ts'

/**
 * The number of ticks after which a stream sends a comment if nothing waits to be sent, so that proxies keep
 * it open; and the length of a tick. At each tick the stream also checks whether the service is ending.
 */
const pingTicks = 12
const tickMs = 1_000

/** The time after which a browser connects again. */
const retryMs = 1_000

/**
 * Sends a subscription as server-sent events, in the form of graphql-sse's distinct connections. Each event
 * has its cursor as `id`, which the browser sends back as `Last-Event-ID`. When the service ends, it cuts the
 * stream without `complete`, so that clients connect again. When the client disconnects, the stream ends at
 * once.
 */
export async function sendEvents(
  stream: FrameStream,
  response: ServerResponse,
  isDraining: () => boolean,
): Promise<void> {
  let ticks = 0
  const heart = setInterval(() => {
    ticks += 1
    if (isDraining()) {
      response.end()
      stream.end()
    } else if (ticks % pingTicks === 0 && response.writableLength === 0) response.write(':\n\n')
  }, tickMs)
  heart.unref()
  response.once('close', () => stream.end())
  if (response.destroyed) stream.end()
  response.write(`retry: ${retryMs}\n\n`)
  try {
    await stream.deliver(outletOf(response))
    if (!isDraining()) response.end(complete)
  } catch (error) {
    response.end(eventText(JSON.stringify({ errors: [error] })) + complete)
  } finally {
    clearInterval(heart)
  }
}

const complete = 'event: complete\ndata:\n\n'

function eventText(json: string): string {
  return `event: next\ndata: ${json}\n\n`
}

function outletOf(response: ServerResponse): Outlet {
  return {
    send: (frame) => response.write(textOf(frame)),
    // A client keeps the id of an event without data, and shows no event.
    mark: (cursor) => void response.write(`id: ${cursor}\n\n`),
    onRoom(listener) {
      response.once('drain', listener)
      return () => response.off('drain', listener)
    },
    cut: () => response.destroy(),
  }
}

const texts = new WeakMap<Frame, Buffer>()

/** Returns the text of a frame's event, written once for all readers. */
function textOf(frame: Frame): Buffer {
  const known = texts.get(frame)
  if (known) return known
  const text = Buffer.from(`id: ${frame.cursor}\n${eventText(frame.json.toString())}`)
  texts.set(frame, text)
  return text
}
