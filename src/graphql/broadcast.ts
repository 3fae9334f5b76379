import { yieldIfBusy } from '../shared/yield-if-busy.ts'
import type { EventLog, LiveStream } from './live-stream.ts'

/** A result of a subscription, written once for all of its readers. */
export interface Frame {
  /** The result as JSON, in UTF-8. */
  json: Buffer
  /** The cursor of the event: a client gives it as `after` to continue from here. */
  cursor: string
}

/** The destination of one reader's frames. */
export interface Outlet {
  /** Hands a frame to the network. @returns whether there is room for another frame */
  send(frame: Frame): boolean
  /** Tells the client a cursor without a result, where the transport can. */
  mark?(cursor: string): void
  /** Calls the listener once when there is room. @returns the function that removes the listener */
  onRoom(listener: () => void): () => void
  /** Closes the connection of a reader that does not read. */
  cut(): void
}

/** The results of a subscription that has not begun to send. */
export interface FrameStream {
  /** Sends frames until the stream ends. @throws the error that the reader is to receive */
  deliver(outlet: Outlet): Promise<void>
  /** Ends the stream at once. */
  end(): void
}

/** The times that the readers of all streams have in common, in milliseconds. */
export interface StreamPace {
  /** The longest time without room in a reader's connection. */
  stallMs: number
  /** The pause between two checkpoints. */
  checkpointMs: number
}

/** A function that writes an event as the frame that its readers get. */
export type FrameWrite<T> = (event: T) => Promise<Frame>

/** The channels of equal subscriptions, by name. */
export type Channels = Map<string, Channel>

/**
 * Adds a stream to the channel of all equal streams until the stream ends.
 * @param name equal for streams whose events look the same to each of their readers
 * @param takeSlot called when the channel opens; it may refuse, and returns the function that gives the slot
 *   back
 * @throws the errors of `takeSlot`
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
 * Sends a stream to its reader. The readers that have received all events of their channel so far share the
 * work: each new event is executed once, and its frame goes to all of them. A reader that is behind executes
 * events alone until it has caught up. For a reader that stalls, nothing waits in memory except the bytes in
 * its connection: the reader falls behind, reads the log again when there is room, and is cut off after
 * `stallMs` without room. At the start, and every `checkpointMs` if the stream has passed over events since
 * its last frame, the reader learns how far the stream is, and can resume there.
 * @throws the error with which `stream` or its log ended
 */
export async function deliver<T>(
  channel: Channel<T>,
  stream: LiveStream<T>,
  write: FrameWrite<T>,
  outlet: Outlet,
  { stallMs, checkpointMs, sendsCheckpoints }: StreamPace & { sendsCheckpoints: boolean },
): Promise<void> {
  let known: string | null = null
  const remembering: Outlet = {
    ...outlet,
    send(frame) {
      known = frame.cursor
      return outlet.send(frame)
    },
  }
  const report = () => {
    const cursor = String(stream.cursor)
    if (cursor === known || stream.signal.aborted) return
    known = cursor
    if (sendsCheckpoints) outlet.send({ json: checkpointJson(cursor), cursor })
    else outlet.mark?.(cursor)
  }
  const timer = setInterval(report, checkpointMs).unref()
  try {
    report()
    while (!stream.signal.aborted) {
      const hasRoom =
        stream.cursor < channel.cursor()
          ? await catchUp(channel, stream, write, remembering)
          : await channel.follow(stream, remembering)
      if (!hasRoom && !(await waitForRoom(stream.signal, outlet, stallMs))) break
    }
  } finally {
    clearInterval(timer)
    stream.end(null)
  }
  if (stream.why) throw stream.why
}

function checkpointJson(cursor: string): Buffer {
  return Buffer.from(JSON.stringify({ data: null, extensions: { checkpoint: cursor } }))
}

/** The work that the readers of equal streams share. */
interface Channel<T = unknown> {
  /** Adds a reader until its signal aborts. The last reader that leaves closes the channel. */
  enter(signal: AbortSignal): void
  /** The position of the last event that the channel has sent, or has skipped as unwanted. */
  cursor(): bigint
  /**
   * Sends new events to a reader.
   * @returns false once the reader has no more room, true at the end of the stream
   */
  follow(stream: LiveStream<T>, outlet: Outlet): Promise<boolean>
}

interface Member {
  stream: LiveStream
  outlet: Outlet
  /** Removes the reader from those that share the work. */
  leave(hasRoom: boolean): void
  fail(error: unknown): void
}

/** Opens a channel at the end of the log: a reader that wants older events catches up alone. */
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
        // A reader that caught up alone may be ahead of the channel.
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

/**
 * Sends the events that the reader has missed, one by one.
 * @returns false if the connection has no more room; true once the reader has every event that the channel
 *   has sent, or its stream has ended
 */
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

/**
 * Waits until the reader's connection has room.
 * @returns false where there was no room in time, or the reader is gone
 */
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
