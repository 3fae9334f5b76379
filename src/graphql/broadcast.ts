import { yieldIfBusy } from '../shared/yield-if-busy.ts'
import type { EventLog, LiveStream } from './live-stream.ts'

/** A result of a subscription, written once for all who read it. */
export interface Frame {
  /** The result as JSON, in UTF-8. */
  json: Buffer
  /** Give it as `after` to go on from here. */
  cursor: string
}

/** Where the frames of one reader go. */
export interface Outlet {
  /** Hands a frame to the network. @returns whether there is room for another */
  send(frame: Frame): boolean
  /** Calls back once when there is room. @returns what forgets the call */
  onRoom(listener: () => void): () => void
  /** Cuts off a reader that does not read. */
  cut(): void
}

/** The results of a subscription, not yet under way. */
export interface FrameStream {
  /** Sends frames until the stream ends. @throws what the reader is to be told */
  deliver(outlet: Outlet): Promise<void>
  /** Ends it at once. */
  end(): void
}

/** Turns an event into what its readers get. */
export type FrameWrite<T> = (event: T) => Promise<Frame>

/** Equal subscriptions, by name. */
export type Channels = Map<string, Channel>

/**
 * Lets a stream share the work of all that are like it, until it ends.
 * @param name equal for streams whose events come out the same, whoever reads them
 * @param takeSlot called for the first of them; it may refuse, and returns what gives the place back
 * @throws what `takeSlot` throws
 */
export function joinChannel<T>(
  channels: Channels,
  name: string,
  stream: LiveStream<T>,
  write: FrameWrite<T>,
  takeSlot: () => () => void,
): Channel<T> {
  const known = channels.get(name) as Channel<T> | undefined
  const channel = known ?? open()
  channel.enter(stream.signal)
  return channel

  function open(): Channel<T> {
    const leave = takeSlot()
    const opened = openChannel(stream, write, () => {
      channels.delete(name)
      leave()
    })
    channels.set(name, opened)
    return opened
  }
}

/**
 * Sends a stream to its reader. Readers of one channel that have all its events share the work: each event
 * is executed once, and its frame goes to all of them. One that is behind executes by itself until it has
 * caught up. Nothing waits in memory for a reader that stalls but what its connection holds: it falls behind,
 * reads the log again when there is room, and is cut off after `stallMs`.
 * @throws what `stream` or its log ended with
 */
export async function deliver<T>(
  channel: Channel<T>,
  stream: LiveStream<T>,
  write: FrameWrite<T>,
  outlet: Outlet,
  stallMs: number,
): Promise<void> {
  try {
    while (!stream.signal.aborted) {
      const hasRoom =
        stream.cursor < channel.cursor()
          ? await catchUp(channel, stream, write, outlet)
          : await channel.follow(stream, outlet)
      if (!hasRoom && !(await waitForRoom(stream.signal, outlet, stallMs))) break
    }
  } finally {
    stream.end(null)
  }
  if (stream.why) throw stream.why
}

/** What many readers share. */
interface Channel<T = unknown> {
  /** One more, until its signal aborts; the last one closes the channel. */
  enter(signal: AbortSignal): void
  /** The last position that was sent to all. */
  cursor(): bigint
  /** Sends what comes. @returns false once the reader has no more room, true at the end of the stream */
  follow(stream: LiveStream<T>, outlet: Outlet): Promise<boolean>
}

interface Member {
  stream: LiveStream
  outlet: Outlet
  /** Ends its membership. */
  leave(hasRoom: boolean): void
  fail(error: unknown): void
}

/** It begins at the end of the log: who wants older events catches up alone. */
function openChannel<T>({ log }: LiveStream<T>, write: FrameWrite<T>, onClose: () => void): Channel<T> {
  const members = new Set<Member>()
  const closed = new AbortController()
  let readers = 0
  let cursor = log.head
  let failure: { error: unknown } | null = null

  async function run(): Promise<void> {
    for await (const event of log.read(cursor, closed.signal)) {
      const frame = isWanted(log, event) ? await write(event) : null
      cursor = log.positionOf(event)
      for (const member of members) {
        const { stream, outlet } = member
        // One that caught up by itself may be ahead.
        if (stream.cursor >= cursor) continue
        stream.cursor = cursor
        if (frame && !outlet.send(frame)) member.leave(false)
      }
      if (frame) await yieldIfBusy()
    }
  }

  function fail(error: unknown): void {
    failure = { error }
    onClose()
    for (const member of members) member.fail(error)
  }

  function leave(): void {
    readers -= 1
    if (readers > 0) return
    closed.abort()
    if (!failure) onClose()
  }

  return {
    enter(signal) {
      readers += 1
      if (readers === 1) void run().catch(fail)
      if (signal.aborted) leave()
      else signal.addEventListener('abort', leave, { once: true })
    },
    cursor: () => cursor,
    follow: (stream, outlet) =>
      new Promise((resolve, reject) => {
        if (failure) return reject(failure.error)
        const end = () => member.leave(true)
        const forget = () => {
          members.delete(member)
          stream.signal.removeEventListener('abort', end)
        }
        const member: Member = {
          stream,
          outlet,
          leave(hasRoom) {
            forget()
            resolve(hasRoom)
          },
          fail(error) {
            forget()
            reject(error)
          },
        }
        members.add(member)
        stream.signal.addEventListener('abort', end)
      }),
  }
}

/** @returns whether there is room for more: then it has all that the channel has sent */
async function catchUp<T>(
  channel: Channel<T>,
  stream: LiveStream<T>,
  write: FrameWrite<T>,
  outlet: Outlet,
): Promise<boolean> {
  for await (const event of stream) {
    const frame = isWanted(stream.log, event) ? await write(event) : null
    if (stream.signal.aborted) break
    stream.cursor = stream.log.positionOf(event)
    if (frame && !outlet.send(frame)) return false
    if (stream.cursor >= channel.cursor()) break
    await yieldIfBusy()
  }
  return true
}

function isWanted<T>(log: EventLog<T>, event: T): boolean {
  return log.wants?.(event) ?? true
}

/** @returns false where there was none in time, or the reader is gone */
function waitForRoom(signal: AbortSignal, outlet: Outlet, stallMs: number): Promise<boolean> {
  if (signal.aborted) return Promise.resolve(false)
  return new Promise((resolve) => {
    const forget = outlet.onRoom(() => end(true))
    const leave = () => end(false)
    const timer = setTimeout(() => {
      outlet.cut()
      end(false)
    }, stallMs)
    signal.addEventListener('abort', leave)

    function end(hasRoom: boolean): void {
      clearTimeout(timer)
      forget()
      signal.removeEventListener('abort', leave)
      resolve(hasRoom)
    }
  })
}
