import type { TypedDocumentNode } from '@urql/core'
import { useSubscription } from '@urql/preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import {
  approvalChangesSubscription,
  batchChangesSubscription,
  type PaymentRowFragment,
  paymentChangesSubscription,
  payoutChangesSubscription,
} from './operations.ts'

/** The pause after a change before the page reads again, so that many changes cost one read (a choice). */
export const calmMs = 400

/**
 * Reads again whenever money moved or an approval was asked for or decided, since `after`.
 * @param after the position in the event log before the page was first read; null until it is known
 */
export function useMoneyChanges(after: number | null | undefined, readAgain: () => void): void {
  // Later reads bring later positions, but the subscriptions go on from the first one.
  const first = useRef<string | null>(null)
  first.current ??= after == null ? null : String(after)
  const notice = useCalm(readAgain)
  useChanges(paymentChangesSubscription, first.current, notice)
  useChanges(payoutChangesSubscription, first.current, notice)
  useChanges(batchChangesSubscription, first.current, notice)
  useChanges(approvalChangesSubscription, first.current, notice)
}

/** Returns a function that calls `act` once after the pause, however often it is called meanwhile. */
export function useCalm(act: () => void): () => void {
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null)
  const latest = useRef(act)
  latest.current = act
  useEffect(() => () => clearTimeout(timer.current ?? undefined), [])
  return () => {
    timer.current ??= setTimeout(() => {
      timer.current = null
      latest.current()
    }, calmMs)
  }
}

/**
 * Gives each payment that changed since `after`, as it is now, each change once and in order.
 * @param after the position in the event log before the page was first read; null until it is known
 */
export function usePaymentChanges(
  after: number | null,
  onChange: (payment: PaymentRowFragment) => void,
): void {
  const first = useRef<string | null>(null)
  first.current ??= after === null ? null : String(after)
  useChanges(paymentChangesSubscription, first.current, ({ transactionChanged: { transaction } }) => {
    if (transaction) onChange(transaction)
  })
}

function useChanges<Change>(
  query: TypedDocumentNode<Change, { after?: string | null | undefined }>,
  after: string | null,
  notice: (change: Change) => void,
): void {
  useSubscription({ query, variables: { after }, pause: after === null }, (_previous, change: Change) => {
    notice(change)
    return change
  })
}

/** Whether changes arrive at this moment; `connecting` until the first connection stands. */
export type Liveness = 'connecting' | 'live' | 'offline'

const listeners = new Set<(liveness: Liveness) => void>()
let present: Liveness = 'connecting'

/** Says whether changes arrive at this moment. The client of the WebSocket calls it. */
export function setLive(isLive: boolean): void {
  present = isLive ? 'live' : 'offline'
  for (const listener of listeners) listener(present)
}

/** Returns whether changes arrive at this moment. */
export function useLiveness(): Liveness {
  const [liveness, set] = useState(present)
  useEffect(() => {
    set(present)
    listeners.add(set)
    return () => void listeners.delete(set)
  }, [])
  return liveness
}
