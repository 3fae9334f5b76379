import { type CombinedError, useMutation } from '@urql/preact'
import { useRef, useState } from 'preact/hooks'
import { onceUnder } from './client.ts'
import { formatXof } from './format.ts'
import { useLanguage, useWords } from './language.ts'
import { type RefundMutation, refundMutation } from './operations.ts'
import { codeOf, errorText, refusalOf, refusalText } from './refusals.ts'
import { forgetRefund, keepRefund, newKey, sentRefundOf } from './sent-refunds.ts'
import type { Words } from './words/fr.ts'

/** The step of a refund, from what the person types to its outcome. */
export type RefundStep = 'typing' | 'checking' | 'sending' | 'unknown' | 'over'

type Answer = RefundMutation['refundTransaction']

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
  const amount = amountOf(state.typed)

  function check(): void {
    const isWrong = amount === null || amount < 1 || amount > left
    const problem = isWrong ? words.refund.wrongAmount(formatXof(left, language)) : undefined
    change({ problem, ...(!isWrong && { step: 'checking' }) })
  }

  /** Sends the refund. @returns whether its outcome is known */
  async function send(): Promise<boolean> {
    if (amount === null) return false
    const isRepeated = sentRefundOf(paymentId) !== undefined
    const reason = state.reason.trim()
    keepRefund(paymentId, { key: key.current, amount, reason })
    change({ step: 'sending' })
    const variables = { id: paymentId, amount, ...(reason !== '' && { reason }) }
    const { data, error } = await refund(variables, onceUnder(key.current))
    const answer = data?.refundTransaction
    const problem = problemOf(answer, error, words)
    if (!isCertain(answer, error, isRepeated)) {
      change({ step: 'unknown', problem })
      return false
    }
    forgetRefund(paymentId)
    // After a refusal nothing was done: the next try is another refund.
    key.current = newKey()
    if (answer?.__typename !== 'PaymentInitiation') change({ step: 'typing', problem })
    else change({ step: 'over', result: resultText(answer, formatXof(amount, language), words.refund) })
    return true
  }

  return { ...state, amount, change, check, send }
}

/** The refusals that come before the service looks whether it carried the refund out already. */
const codesBefore: ReadonlySet<string> = new Set(['FORBIDDEN', 'RATE_LIMITED', 'UNAUTHENTICATED'])
/** The refusals after which the same refund is sent again, under its key. */
const codesBusy: ReadonlySet<string> = new Set(['OVERLOADED', 'SERVICE_DOWN'])

/** Whether an answer says what became of the refund. @param isRepeated whether it was sent before */
function isCertain(
  answer: Answer | undefined,
  error: CombinedError | undefined,
  isRepeated: boolean,
): boolean {
  const code = refusalOf(answer)?.code ?? codeOf(error)
  if (codesBusy.has(code)) return false
  return codesBefore.has(code) ? !isRepeated : answer != null
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
  const isSaid = codesBefore.has(codeOf(error)) || codesBusy.has(codeOf(error))
  return isSaid && error ? errorText(error, words) : words.refund.unknown
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

/**
 * Reads an amount as people write it, with or without spaces; null where it is none. A point or a comma is
 * one between thousands: `50,00` is no amount, and not five thousand.
 */
function amountOf(typed: string): number | null {
  const amount = typed.replaceAll(/\s/g, '')
  return /^(\d{1,12}|\d{1,3}([.,]\d{3}){1,3})$/.test(amount) ? Number(amount.replaceAll(/\D/g, '')) : null
}
