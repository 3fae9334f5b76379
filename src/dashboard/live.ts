import { useSubscription } from '@urql/preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { paymentChangesSubscription } from './operations.ts'

/** The pause after a change before the page reads again, so that many changes cost one read (a choice). */
const calmMs = 400

/**
 * Reads again whenever a payment changed since `after`.
 * @param after the position in the event log before the page was first read; null until it is known
 */
export function usePaymentChanges(after: number | null | undefined, readAgain: () => void): void {
  // Later reads bring later positions, but the subscription goes on from the first one.
  const first = useRef<string | null>(null)
  first.current ??= after == null ? null : String(after)
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null)
  const latest = useRef(readAgain)
  latest.current = readAgain
  useEffect(() => () => clearTimeout(timer.current ?? undefined), [])
  useSubscription(
    { query: paymentChangesSubscription, variables: { after: first.current }, pause: first.current === null },
    (_previous, change) => {
      timer.current ??= setTimeout(() => {
        timer.current = null
        latest.current()
      }, calmMs)
      return change
    },
  )
}

const listeners = new Set<(isLive: boolean) => void>()
let live = true

/** Says whether changes arrive at this moment. The client of the WebSocket calls it. */
export function setLive(isLive: boolean): void {
  live = isLive
  for (const listener of listeners) listener(isLive)
}

/** Whether changes arrive at this moment; false while the network is away. */
export function useIsLive(): boolean {
  const [isLive, set] = useState(live)
  useEffect(() => {
    listeners.add(set)
    return () => void listeners.delete(set)
  }, [])
  return isLive
}
