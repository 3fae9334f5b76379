import type { OpenRequest } from '../../operators/requests.ts'
import { limits } from '../../shared/limits.ts'
import type { Provider } from '../../shared/providers.ts'

/** A recipient that was taken, to be sent before its deadline. */
export interface Begun {
  batchId: number
  request: OpenRequest
  deadline: Date
}

/** What of a batch is at one operator, or taken to go there. */
interface Lane {
  readonly batchId: number
  readonly provider: Provider
  /** Taken, and no call yet. */
  readonly waiting: Begun[]
  calls: number
}

/** What was taken and not answered, each batch by each operator. */
export interface Lanes {
  add(begun: Begun): void
  /** Called after each answer. */
  onAnswered: () => void
  open(): number
  list(): { batchId: number; provider: Provider; open: number; ahead: number }[]
}

/**
 * Sends what was taken: of one batch `limits.batchInFlightMax` at a time, which its operators share; of one
 * operator `limits.recipientsInFlightMax`. What operators that answer at once will soon be asked is taken
 * ahead (`ahead`), so that one statement takes many; of one that is slow nothing is.
 * @param over nothing is sent any more
 * @param send calls back once when the operator has answered or will not
 */
export function openLanes(over: AbortSignal, send: (begun: Begun, onAnswered: () => void) => void): Lanes {
  const lanes = new Set<Lane>()
  /** How long calls take, the newest counts most. */
  const meanMs = new Map<Provider, number>()
  const openOf = ({ waiting, calls }: Lane) => waiting.length + calls
  const callsOf = (some: Iterable<Lane>) => [...some].reduce((sum, { calls }) => sum + calls, 0)
  const lanesOf = (what: Partial<Pick<Lane, 'batchId' | 'provider'>>) =>
    [...lanes].filter(
      ({ batchId, provider }) =>
        batchId === (what.batchId ?? batchId) && provider === (what.provider ?? provider),
    )

  /** The lane of a batch that calls next: the one with the fewest calls, within its share. */
  function nextOf(batchId: number): Lane | undefined {
    const own = lanesOf({ batchId })
    if (callsOf(own) >= limits.batchInFlightMax) return undefined
    const share = Math.floor(limits.batchInFlightMax / Math.max(1, own.length))
    return own
      .filter(({ waiting, calls }) => waiting.length > 0 && calls < share)
      .filter(({ provider }) => callsOf(lanesOf({ provider })) < limits.recipientsInFlightMax)
      .toSorted((a, b) => a.calls - b.calls)[0]
  }

  function fill(batchId: number): void {
    if (over.aborted) return
    for (let lane = nextOf(batchId); lane; lane = nextOf(batchId)) call(lane)
  }

  function call(lane: Lane): void {
    const begun = lane.waiting.shift()
    if (!begun) return
    const { batchId, provider } = lane
    lane.calls += 1
    const at = performance.now()
    let answered = false
    send(begun, () => {
      if (answered) return
      answered = true
      const wasFull = callsOf(lanesOf({ provider })) >= limits.recipientsInFlightMax
      lane.calls -= 1
      if (openOf(lane) === 0) lanes.delete(lane)
      const tookMs = performance.now() - at
      meanMs.set(provider, (meanMs.get(provider) ?? tookMs) * 0.8 + tookMs * 0.2)
      for (const each of wasFull ? new Set([...lanes].map((other) => other.batchId)) : [batchId]) fill(each)
      it.onAnswered()
    })
  }

  /** How many more calls could begin within a moment than may be under way. */
  function aheadOf({ provider }: Lane): number {
    const soon = limits.batchInFlightMax * (limits.recipientsAheadMs / (meanMs.get(provider) ?? Infinity) - 1)
    return Math.floor(Math.min(Math.max(0, soon), limits.recipientsAheadMax))
  }

  const it: Lanes = {
    add(begun) {
      const { batchId, request } = begun
      const { provider } = request
      const [known] = lanesOf({ batchId, provider })
      const lane = known ?? { batchId, provider, waiting: [], calls: 0 }
      lanes.add(lane)
      lane.waiting.push(begun)
      fill(batchId)
    },
    onAnswered: () => {},
    open: () => [...lanes].reduce((sum, lane) => sum + openOf(lane), 0),
    list: () =>
      [...lanes].map((lane) => {
        const { batchId, provider } = lane
        return { batchId, provider, open: openOf(lane), ahead: aheadOf(lane) }
      }),
  }
  return it
}
