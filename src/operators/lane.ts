import { spareMs } from './deadline.ts'
import type { CallContext, NotSent } from './operator.ts'

/** Calls that wait for their turn: first come, first served, and none longer than its deadline allows. */
export interface WaitingRoom<Turn> {
  readonly size: number
  /** @returns the turn, when it has come */
  wait(ctx: CallContext): Promise<Turn | NotSent>
  /** Gives the turn to the first one. @returns false where nobody waits */
  admit(turn: Turn): boolean
  sendAway(answer: NotSent): void
}

export function createWaitingRoom<Turn>(): WaitingRoom<Turn> {
  const waiting = new Set<(answer: Turn | NotSent) => void>()
  return {
    get size() {
      return waiting.size
    },
    wait: (ctx) =>
      new Promise((resolve) => {
        const late = () => settle({ kind: 'not_sent', cause: 'deadline_before_send' })
        const timer = setTimeout(late, Math.max(0, spareMs(ctx))).unref()
        const settle = (answer: Turn | NotSent) => {
          clearTimeout(timer)
          ctx.signal?.removeEventListener('abort', late)
          waiting.delete(settle)
          resolve(answer)
        }
        ctx.signal?.addEventListener('abort', late, { once: true })
        waiting.add(settle)
        if (ctx.signal?.aborted) late()
      }),
    admit(turn) {
      const [next] = waiting
      next?.(turn)
      return next !== undefined
    },
    sendAway(answer) {
      for (const settle of waiting) settle(answer)
    },
  }
}

/** A bounded number of calls at once, and a bounded number that wait for their turn. */
export interface Lane {
  readonly hasRoom: boolean
  /** Enters, at once or when a place is free; whoever enters must `leave`. */
  enter(ctx: CallContext): Promise<NotSent | null>
  leave(): void
  /** Sends all who wait away. */
  sendAway(answer: NotSent): void
  /** Lets nobody in any more. */
  close(): void
}

export function createLane(callsMax: number, waitingMax: number): Lane {
  const room = createWaitingRoom<null>()
  const closed = { kind: 'not_sent', cause: 'circuit_open' } as const
  let running = 0
  let ended = false

  return {
    get hasRoom() {
      return !ended && (running < callsMax || room.size < waitingMax)
    },
    async enter(ctx) {
      if (ended) return closed
      if (running < callsMax) {
        running += 1
        return null
      }
      return room.size < waitingMax ? room.wait(ctx) : { kind: 'not_sent', cause: 'lane_full' }
    },
    leave() {
      // The place passes on without becoming free, so that nobody who comes later takes it first.
      if (!room.admit(null)) running -= 1
    },
    sendAway: (answer) => room.sendAway(answer),
    close() {
      ended = true
      room.sendAway(closed)
    },
  }
}
