import type { TypedDocumentNode } from '@urql/core'
import { useSubscription } from '@urql/preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import {
  approvalChangesSubscription,
  batchChangesSubscription,
  type BatchProgressSubscription,
  batchProgressSubscription,
  eventsSubscription,
  linkUsesSubscription,
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
  const first = useFirst(after)
  const notice = useCalm(readAgain)
  useChanges(paymentChangesSubscription, first, notice)
  useChanges(payoutChangesSubscription, first, notice)
  useChanges(batchChangesSubscription, first, notice)
  useChanges(approvalChangesSubscription, first, notice)
}

/**
 * Reads again whenever a batch changed since `after`.
 * @param after the position in the event log before the page was first read; null until it is known
 */
export function useBatchChanges(after: number | null | undefined, readAgain: () => void): void {
  useChanges(batchChangesSubscription, useFirst(after), useCalm(readAgain))
}

/**
 * Gives each step of one batch since `after`, in order.
 * @param after the position in the event log before the page was first read; null until it is known
 */
export function useBatchProgress(
  id: string,
  after: number | null | undefined,
  onStep: (step: BatchProgressSubscription['batchProgress']) => void,
): void {
  useChanges(batchProgressSubscription, useFirst(after), ({ batchProgress }) => onStep(batchProgress), { id })
}

/**
 * Reads again whenever a payout changed since `after`.
 * @param after the position in the event log before the page was first read; null until it is known
 */
export function usePayoutChanges(after: number | null | undefined, readAgain: () => void): void {
  useChanges(payoutChangesSubscription, useFirst(after), useCalm(readAgain))
}

/**
 * Reads again whenever a customer paid by a link since `after`.
 * @param id the link; null for all
 */
export function useLinkUses(
  id: string | null,
  after: number | null | undefined,
  readAgain: () => void,
): void {
  useChanges(linkUsesSubscription, useFirst(after), useCalm(readAgain), { id })
}

/**
 * Reads again whenever an event was written since `after`.
 * @param after the position in the event log before the page was first read; null until it is known
 */
export function useEventChanges(after: number | null | undefined, readAgain: () => void): void {
  useChanges(eventsSubscription, useFirst(after), useCalm(readAgain))
}

/** Keeps the first position that is known: later reads bring later ones, but subscriptions go on from it. */
function useFirst(after: number | null | undefined): string | null {
  const first = useRef<string | null>(null)
  first.current ??= after == null ? null : String(after)
  return first.current
}

/** Returns a function that calls `act` once after the pause, however often it is called meanwhile. */
export function useCalm(act: () => void, pauseMs = calmMs): () => void {
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null)
  const latest = useRef(act)
  latest.current = act
  useEffect(() => () => clearTimeout(timer.current ?? undefined), [])
  return () => {
    timer.current ??= setTimeout(() => {
      timer.current = null
      latest.current()
    }, pauseMs)
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
  useChanges(paymentChangesSubscription, useFirst(after), ({ transactionChanged: { transaction } }) => {
    if (transaction) onChange(transaction)
  })
}

type After = { after?: string | null | undefined }

function useChanges<Change, Others extends object = object>(
  query: TypedDocumentNode<Change, After & Others>,
  after: string | null,
  notice: (change: Change) => void,
  others?: Others,
): void {
  useSubscription(
    { query, variables: { ...others, after } as After & Others, pause: after === null },
    (_previous, change: Change) => {
      notice(change)
      return change
    },
  )
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
