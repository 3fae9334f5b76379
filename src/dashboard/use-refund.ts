import { type CombinedError, useMutation } from '@urql/preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { onceUnder } from './client.ts'
import { formatXof, readAmount } from './format.ts'
import { useLanguage, useWords } from './language.ts'
import { type RefundMutation, refundMutation } from './operations.ts'
import { errorText, refusalOf, refusalText } from './refusals.ts'
import { forgetSent, isCertain, isSaid, keepSent, newKey, sentOf } from './sent-money.ts'
import type { Words } from './words/fr.ts'

/** The step of a refund, from what the person types to its outcome. */
export type RefundStep = 'typing' | 'checking' | 'sending' | 'unknown' | 'over'

type Answer = RefundMutation['refundTransaction']

/** A refund that was sent. */
interface SentRefund {
  /** The key under which the service carries it out once. */
  key: string
  /** The amount in whole francs. */
  amount: number
  reason: string
}

const nameOf = (paymentId: string) => `refund-${paymentId}`

/** Returns the refund of a payment whose outcome is unknown; undefined where there is none. */
export const sentRefundOf = (paymentId: string) => sentOf(nameOf(paymentId)) as SentRefund | undefined

/** The facts of a refund that the person sees and changes. */
interface RefundState {
  step: RefundStep
  typed: string
  reason: string
  problem: string | undefined
  result: string | undefined
}

/**
 * Gives a refund its steps. It has a key of its own, under which the service carries it out once, however
 * often it is sent; and it is kept before it is sent, until its outcome is known.
 * @param left the amount that can still be given back, in whole francs
 */
export function useRefund(paymentId: string, left: number) {
  const words = useWords()
  const language = useLanguage()
  const sent = sentRefundOf(paymentId)
  const key = useRef(sent?.key ?? newKey())
  const [state, setState] = useState<RefundState>({
    step: sent ? 'unknown' : 'typing',
    typed: String(sent?.amount ?? left),
    reason: sent?.reason ?? '',
    problem: sent && words.refund.unknown,
    result: undefined,
  })
  const [, refund] = useMutation(refundMutation)
  const change = (more: Partial<RefundState>) => setState((before) => ({ ...before, ...more }))
  const amount = readAmount(state.typed)

  function check(): void {
    const isWrong = amount === null || amount < 1 || amount > left
    const problem = isWrong ? words.refund.wrongAmount(formatXof(left, language)) : undefined
    change({ problem, ...(!isWrong && { step: 'checking' }) })
  }

  // Two clicks may come before the page is drawn again.
  const isUnderWay = useRef(false)
  // The answer may come when the person has gone to another page.
  const isShown = useRef(true)
  useEffect(() => () => void (isShown.current = false), [])

  /** Sends the refund. @returns whether its outcome is known */
  async function send(): Promise<boolean> {
    if (isUnderWay.current) return false
    isUnderWay.current = true
    const isKnown = await sendOnce()
    isUnderWay.current = false
    return isKnown
  }

  async function sendOnce(): Promise<boolean> {
    if (amount === null) return false
    const kept = sentRefundOf(paymentId)
    if (kept && kept.key !== key.current) {
      // Another page sent a refund meanwhile: its outcome comes first.
      key.current = kept.key
      const { reason } = kept
      change({ step: 'unknown', typed: String(kept.amount), reason, problem: words.refund.unknown })
      return false
    }
    const isRepeated = state.step === 'unknown' || kept !== undefined
    const reason = state.reason.trim()
    keepSent(nameOf(paymentId), { key: key.current, amount, reason } satisfies SentRefund)
    change({ step: 'sending' })
    const variables = { id: paymentId, amount, ...(reason !== '' && { reason }) }
    const { data, error } = await refund(variables, onceUnder(key.current))
    const answer = data?.refundTransaction
    const problem = problemOf(answer, error, words)
    if (!isCertain(answer, error, isRepeated)) {
      change({ step: 'unknown', problem })
      return false
    }
    // An answer that the person did not see is no known outcome: the next page asks for it again.
    if (!isShown.current) return false
    forgetSent(nameOf(paymentId))
    // After a refusal nothing was done: the next try is another refund.
    key.current = newKey()
    if (answer?.__typename !== 'PaymentInitiation') change({ step: 'typing', problem })
    else change({ step: 'over', result: resultText(answer, formatXof(amount, language), words.refund) })
    return true
  }

  return { ...state, amount, change, check, send }
}

function problemOf(
  answer: Answer | undefined,
  error: CombinedError | undefined,
  words: Words,
): string | undefined {
  const refusal = refusalOf(answer)
  if (answer?.__typename === 'InvalidInputError' && answer.problems.some(({ field }) => field === 'amount'))
    return words.refund.wrongSmall
  if (refusal) return refusalText(refusal, words)
  if (answer) return undefined
  return isSaid(error) && error ? errorText(error, words) : words.refund.unknown
}

type Initiated = Extract<Answer, { __typename: 'PaymentInitiation' }>

function resultText({ status }: Initiated, amount: string, words: Words['refund']): string {
  switch (status) {
    case 'SUCCESS':
      return words.done(amount)
    case 'PENDING_APPROVAL':
      return words.approval(amount)
    case 'PENDING':
    case 'PROCESSING':
      return words.underWay(amount)
    case 'FAILED':
    case 'CANCELLED':
    case 'EXPIRED':
    case 'REVERSED':
      return words.failed
  }
}
