import { beforeEach, expect, test } from 'vitest'
import { eventually } from '../kit/eventually.ts'
import {
  type Channels,
  deliver,
  type Frame,
  joinChannel,
  type Outlet,
  type FrameWrite,
} from '../../src/graphql/broadcast.ts'
import type { LiveStream } from '../../src/graphql/live-stream.ts'
import { DomainError } from '../../src/shared/errors.ts'
import { logOf, Ticks } from '../kit/graphql.ts'

let ticks: Ticks
let channels: Channels
let written: number[]
/** Subscription slots that channels take. */
let slots: number
beforeEach(() => {
  slots = 0
  ticks = new Ticks()
  channels = new Map()
  written = []
})

/** A reader that, like the transports, takes frames until it is full. */
interface Reading {
  room?: number
  name?: string
  stallMs?: number
  checkpointMs?: number
  sendsCheckpoints?: boolean
  /** The time that an event takes to be written. */
  writing?: (n: number) => Promise<unknown>
  wants?: (event: { n: number }) => boolean
}

function reader(after: string | null = null, reading: Reading = {}) {
  const { room = Infinity, name = 'a', stallMs = 5_000, wants = () => true } = reading
  const { checkpointMs = 3_600_000, sendsCheckpoints = false, writing = () => Promise.resolve() } = reading
  const leaving = new AbortController()
  const stream: LiveStream<{ n: number }> & { why: DomainError | null } = {
    log: { ...logOf(ticks, after), wants },
    cursor: after === null ? BigInt(ticks.head) : BigInt(after),
    signal: leaving.signal,
    why: null,
    end(why) {
      this.why ??= why
      leaving.abort()
    },
    [Symbol.asyncIterator]() {
      return this.log.read(this.cursor, leaving.signal)[Symbol.asyncIterator]()
    },
  }
  const seen: string[] = []
  const listeners = new Set<() => void>()
  const state = { room, isCut: false }
  const outlet: Outlet = {
    send({ cursor }) {
      seen.push(cursor)
      state.room -= 1
      return state.room > 0
    },
    onRoom(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    cut() {
      state.isCut = true
    },
  }
  const write: FrameWrite<{ n: number }> = async ({ n }): Promise<Frame> => {
    written.push(n)
    await writing(n)
    return { json: Buffer.from(`${n}`), cursor: `${n}` }
  }
  const channel = joinChannel(channels, name, stream, write, () => {
    slots += 1
    return () => (slots -= 1)
  })
  const done = deliver(channel, stream, write, outlet, { stallMs, checkpointMs, sendsCheckpoints })
  return {
    stream,
    seen,
    state,
    done,
    drain(more = Infinity) {
      state.room = more
      for (const listener of listeners) listener()
    },
  }
}

const upTo = (last: number, first = 1) => Array.from({ length: last - first + 1 }, (_, n) => `${first + n}`)

test('each event is written once for all readers of a channel, and once for each other channel', async () => {
  const readers = [reader(), reader(), reader(), reader(null, { name: 'b' })]
  for (let n = 1; n <= 5; n += 1) {
    ticks.advance(n)
    await eventually(() => readers.every(({ seen }) => seen.length === n))
  }
  expect(readers.map(({ seen }) => seen)).toEqual(readers.map(() => upTo(5)))
  expect(written).toHaveLength(5 * 2)
  expect(slots).toBe(2)
  for (const { stream } of readers) stream.end(null)
  await Promise.all(readers.map(({ done }) => done))
  await eventually(() => ticks.open === 0)
  expect([channels.size, slots]).toEqual([0, 0])
})

test('a reader that begins in the past catches up alone, then shares; no reader waits for it', async () => {
  ticks.advance(100)
  const [live, late] = [reader(), reader('90')]
  await eventually(() => late.seen.length === 10)
  expect([live.seen, written.length]).toEqual([[], 10])
  ticks.advance(101)
  await eventually(() => live.seen.length === 1 && late.seen.length === 11)
  expect([live.seen, late.seen, written.length]).toEqual([['101'], upTo(101, 91), 11])
  for (const { stream } of [live, late]) stream.end(null)
})

test('events that a reader does not want are skipped, and no other reader stops sharing', async () => {
  ticks.advance(100)
  const even = { wants: ({ n }: { n: number }) => n % 2 === 0 }
  // The events that these two missed are of another kind; so is the last event of the log.
  ticks.advance(101)
  const [live, ...late] = [reader(null, even), reader('100', even), reader('100', even)]
  await Promise.all(late.map(({ stream }) => eventually(() => stream.cursor === 101n)))
  ticks.advance(105)
  const readers = [live, ...late]
  await eventually(() => readers.every(({ stream }) => stream.cursor === 105n))
  expect(readers.map(({ seen }) => seen)).toEqual(readers.map(() => ['102', '104']))
  expect(written).toEqual([102, 104])
  for (const { stream } of readers) stream.end(null)
})

test('a first reader that begins in the past does not delay the readers after it', async () => {
  ticks.advance(1_000)
  const late = reader('0', { room: 1 })
  await eventually(() => late.seen.length === 1)
  const live = reader()
  ticks.advance(1_001)
  await eventually(() => live.seen.length === 1)
  expect([live.seen, late.seen]).toEqual([['1001'], ['1']])
  for (const { stream } of [live, late]) stream.end(null)
})

test('a reader whose buffer is full leaves the channel, loses no event, and joins again', async () => {
  const [slow, fast] = [reader(null, { room: 2 }), reader()]
  ticks.advance(50)
  await eventually(() => fast.seen.length === 50)
  expect(slow.seen).toEqual(['1', '2'])
  slow.drain()
  await eventually(() => slow.seen.length === 50)
  const before = written.length
  ticks.advance(60)
  await eventually(() => fast.seen.length === 60 && slow.seen.length === 60)
  expect([slow.seen, fast.seen]).toEqual([upTo(60), upTo(60)])
  expect(written.length - before).toBe(10)
  for (const { stream } of [slow, fast]) stream.end(null)
})

test('a reader that stays full is cut off, and the others go on', async () => {
  const [stalled, fast] = [reader(null, { room: 1, stallMs: 50 }), reader()]
  ticks.advance(5)
  await stalled.done
  expect([stalled.state.isCut, stalled.stream.signal.aborted, stalled.seen]).toEqual([true, true, ['1']])
  ticks.advance(6)
  await eventually(() => fast.seen.length === 6)
  expect(fast.state.isCut).toBe(false)
  fast.stream.end(null)
})

test.each(['sharing', 'catching up', 'without room'])(
  'a reader that is ended while %s gets the reason and no further event',
  async (how) => {
    ticks.advance(10)
    const one = reader(how === 'catching up' ? '0' : null, { room: how === 'without room' ? 1 : Infinity })
    const other = reader()
    ticks.advance(11)
    await eventually(() => one.seen.at(-1) === '11')
    one.stream.end(new DomainError('UNAUTHENTICATED'))
    await expect(one.done).rejects.toMatchObject({ code: 'UNAUTHENTICATED' })
    ticks.advance(12)
    await eventually(() => other.seen.at(-1) === '12')
    expect(one.seen.at(-1)).toBe('11')
    other.stream.end(null)
  },
)

test.each([
  ['live', null],
  ['from the past', '0'],
])('many events at once, read %s, leave other work its turns', async (_how, after) => {
  const last = 30_000
  if (after !== null) ticks.advance(last)
  const readers = Array.from({ length: 3 }, () => reader(after))
  let turns = 0
  ticks.advance(last)
  while (!readers.every(({ seen }) => seen.length === last)) {
    await new Promise((resolve) => setImmediate(resolve))
    turns += 1
  }
  expect(turns).toBeGreaterThan(3)
  for (const { seen, stream } of readers) {
    expect(seen).toEqual(upTo(last))
    stream.end(null)
  }
})

test('a log that fails ends its readers, and the next reader opens it again', async () => {
  const broken = reader()
  broken.stream.end(null)
  await broken.done
  const failing = reader()
  const failure = new Error('the database is gone')
  ticks.fail(failure)
  await expect(failing.done).rejects.toBe(failure)
  expect([channels.size, slots]).toEqual([0, 0])
  const next = reader()
  ticks.advance(1)
  await eventually(() => next.seen.length === 1)
  next.stream.end(null)
})

test.each(['0', null])(
  'a checkpoint waits for the event that is being written (after: %s)',
  async (after) => {
    const gate = Promise.withResolvers<void>()
    const reading = {
      sendsCheckpoints: true,
      checkpointMs: 1,
      writing: (n: number) => (n === 3 ? gate.promise : Promise.resolve()),
    }
    if (after) ticks.advance(10)
    const { seen, stream } = reader(after, { ...reading, wants: ({ n }) => n !== 10 })
    if (!after) ticks.advance(10)
    await eventually(() => written.includes(3))
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(seen).toEqual(['0', '1', '2'])
    gate.resolve()
    await eventually(() => seen.length === 11)
    // The last one is the checkpoint beyond the event that is not wanted.
    expect(seen).toEqual(['0', ...upTo(10)])
    stream.end(null)
  },
)
