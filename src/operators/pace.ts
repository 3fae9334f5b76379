import { spareMs } from './deadline.ts'
import { createWaitingRoom } from './lane.ts'
import type { CallContext, NotSent } from './operator.ts'

/** How many calls an operator grants in a second. */
export interface Pace {
  /**
   * Waits for a turn: whoever a customer waits for goes before all background work, also what came earlier;
   * of each the first one first.
   * @returns null when the turn has come; `rate_limited`, at once, where it cannot come in time
   */
  take(ctx: CallContext): Promise<NotSent | null>
}

type Lane = CallContext['lane']

/** What may leave at once after a pause. Nobody waits for background work: half is kept for who does. */
const burstMs = { interactive: 2_000, background: 1_000 } as const satisfies Record<Lane, number>

/** A token bucket as one number, the time at which it would be full again; and who waits for it. */
export function createPace(perSecond: number): Pace {
  const stepMs = 1_000 / perSecond
  const rooms = { interactive: createWaitingRoom<null>(), background: createWaitingRoom<null>() }
  let fullAt = 0
  let next: NodeJS.Timeout | undefined

  const pauseMs = (lane: Lane) => Math.max(0, fullAt + stepMs - burstMs[lane] - performance.now())
  const spend = () => void (fullAt = Math.max(fullAt, performance.now()) + stepMs)
  /** As long as nobody comes who goes first. */
  function waitMs(lane: Lane): number {
    const before = rooms.interactive.size + (lane === 'background' ? rooms.background.size : 0)
    return pauseMs(lane) + before * stepMs
  }

  function serve(): void {
    for (const lane of ['interactive', 'background'] as const)
      while (pauseMs(lane) === 0 && rooms[lane].admit(null)) spend()
    arm()
  }
  function arm(): void {
    clearTimeout(next)
    const lane = rooms.interactive.size > 0 ? 'interactive' : 'background'
    if (rooms[lane].size > 0) next = setTimeout(serve, pauseMs(lane)).unref()
  }

  return {
    async take(ctx) {
      const wait = waitMs(ctx.lane)
      if (wait > spareMs(ctx)) return { kind: 'not_sent', cause: 'rate_limited', retryAfterMs: wait }
      if (wait === 0) {
        spend()
        return null
      }
      const turn = rooms[ctx.lane].wait(ctx)
      arm()
      return turn
    },
  }
}
