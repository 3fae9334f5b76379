import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { passOver, passOverBounds } from '../../src/http/pass-over.ts'

beforeEach(() => vi.useFakeTimers())
afterEach(() => vi.useRealTimers())

/** A socket that only counts how often it was closed. */
class CountedSocket extends Socket {
  closes = 0
  override destroySoon(): void {
    this.closes += 1
  }
}

/** A request that is still arriving, and a count of the calls that close its connection. */
function arriving() {
  const socket = new CountedSocket()
  const message = new IncomingMessage(socket)
  return { socket, message, closes: () => socket.closes }
}
const { silenceMs, maxBytes } = passOverBounds
/** Lets the streams hand on what they got. */
const turn = () => vi.advanceTimersByTimeAsync(0)

test('a client that sends something within each five seconds is read on; silence ends it', async () => {
  const { message, closes } = arriving()
  passOver(message)
  for (let n = 0; n < 5; n += 1) {
    message.push('a')
    await turn()
    vi.advanceTimersByTime(silenceMs - 1)
  }
  expect(closes()).toBe(0)
  vi.advanceTimersByTime(1)
  expect(closes()).toBe(1)
})

test('a body beyond the bound ends the connection', async () => {
  const { message, closes } = arriving()
  passOver(message)
  message.push(Buffer.alloc(maxBytes))
  await turn()
  expect(closes()).toBe(0)
  message.push('a')
  await turn()
  expect(closes()).toBe(1)
})

test('the connection is closed once the body is read, and no earlier', async () => {
  const { socket, message, closes } = arriving()
  passOver(message)
  socket.destroySoon()
  message.push('a')
  await turn()
  expect(closes()).toBe(0)
  message.push(null)
  await turn()
  expect(closes()).toBe(1)
})
