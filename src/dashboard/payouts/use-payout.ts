import { type Client, useClient } from '@urql/preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { onceUnder } from '../client.ts'
import { useWords } from '../language.ts'
import { useMe } from '../me.ts'
import {
  type CreatePayoutInput,
  type CreatePayoutMutation,
  createPayoutMutation,
  payeeQuery,
} from '../operations.ts'
import { problemText, refusalOf } from '../refusals.ts'
import { forgetSent, isCertain, isSaid, keepSent, newKey, sentOf } from '../sent-money.ts'
import { usePayoutWords } from './words.ts'

/** A payout as the person checks it before it is sent. */
export interface PayoutOrder {
  input: CreatePayoutInput
  /** The person and the account that the page shows. */
  payee: { name: string | null; phone: string; paymentMethod: string }
}

/** A payout that was checked, or sent. */
interface KeyedOrder extends PayoutOrder {
  /** The key under which the service carries it out once. */
  key: string
}

/** A field of the form. */
export type PayoutField = 'payee' | 'phone' | 'operator' | 'amount' | 'moment' | 'reference'

/** The step of a payout, from what the person types to its outcome. */
type Step = 'typing' | 'checking' | 'sending' | 'unknown'

interface PayoutState {
  step: Step
  order: KeyedOrder | null
  problem: string | undefined
  /** The field that the service refused. */
  refused: PayoutField | null
}

/** Gives a payout its steps. It is kept before it is sent, until its outcome is known. */
export function usePayout(onMade: (databaseId: number) => void) {
  const client = useClient()
  const words = useWords()
  const own = usePayoutWords()
  const { merchantId, memberId } = useMe()
  // Another person may sign in at this window: the payout is not theirs to send again.
  const sentName = `payout-${merchantId}-${memberId}`
  const [state, setState] = useState<PayoutState>(() => {
    const sent = sentOf(sentName) as KeyedOrder | undefined
    const problem = sent && own.check.unknown
    return { step: sent ? 'unknown' : 'typing', order: sent ?? null, problem, refused: null }
  })
  const change = (more: Partial<PayoutState>) => setState((before) => ({ ...before, ...more }))
  const check = (order: PayoutOrder) =>
    change({ step: 'checking', order: { ...order, key: newKey() }, problem: undefined, refused: null })
  // Two clicks may come before the page is drawn again.
  const isUnderWay = useRef(false)
  // The answer may come when the person has gone to another page.
  const isShown = useRef(true)
  useEffect(() => () => void (isShown.current = false), [])

  async function sendOnce(): Promise<void> {
    if (isUnderWay.current) return
    isUnderWay.current = true
    await send()
    isUnderWay.current = false
  }

  async function send(): Promise<void> {
    const { order } = state
    if (!order) return
    const { input } = order
    const kept = sentOf(sentName) as KeyedOrder | undefined
    // Another page sent a payout meanwhile: its outcome comes first.
    if (kept && kept.key !== order.key)
      return change({ step: 'unknown', order: kept, problem: own.check.unknown })
    change({ step: 'sending', problem: undefined })
    const isRepeated = state.step === 'unknown' || kept !== undefined
    keepSent(sentName, order)
    const { data, error } = await client
      .mutation(createPayoutMutation, { input }, onceUnder(order.key))
      .toPromise()
    const answer = data?.createPayout
    if (!isCertain(answer, error, isRepeated)) {
      const said = isSaid(error) ? problemText(error, answer, words) : undefined
      return change({ step: 'unknown', problem: said ?? own.check.unknown })
    }
    // An answer that the person did not see is no known outcome: the next page asks for it again.
    if (!isShown.current) return
    forgetSent(sentName)
    if (answer?.__typename === 'Payout') return onMade(answer.databaseId)
    const refused = refusedField(answer)
    if (input.beneficiaryId != null && refused !== null && payeeFields.has(refused)) {
      const isOther = await hasPayeeChanged(client, order)
      const problem = isOther ? own.form.payeeChanged : undefined
      return change({ step: 'typing', refused: isOther ? null : 'payee', problem })
    }
    change({ step: 'typing', refused, problem: refused ? undefined : problemText(error, answer, words) })
  }

  return { ...state, check, send: sendOnce, edit: () => change({ step: 'typing' }) }
}

/** Reads a saved person again, also for the form. @returns whether the account is not the one shown */
async function hasPayeeChanged(client: Client, { input, payee }: PayoutOrder): Promise<boolean> {
  const id = input.beneficiaryId ?? ''
  const { data } = await client.query(payeeQuery, { id }, { requestPolicy: 'network-only' }).toPromise()
  const person = data?.beneficiary
  return person?.account !== payee.phone || person.paymentMethod !== payee.paymentMethod
}

/** Returns the field of the form that an answer is about; null where it is about none. */
function refusedField(answer: CreatePayoutMutation['createPayout'] | undefined): PayoutField | null {
  const code = refusalOf(answer)?.code
  if (code === 'DUPLICATE_PAYOUT') return 'reference'
  if (code === 'NOT_FOUND') return 'payee'
  if (answer?.__typename !== 'InvalidInputError') return null
  const names = answer.problems.map(({ field }) => field.split('.').at(-1) ?? '')
  return names.map((name) => fieldsByName[name]).find((field) => field !== undefined) ?? null
}

/** The fields that a saved person fills. */
const payeeFields: ReadonlySet<PayoutField> = new Set(['payee', 'phone', 'operator'])

/** The fields of the form under the names that the service has for them. */
const fieldsByName: Readonly<Record<string, PayoutField>> = {
  amount: 'amount',
  beneficiaryId: 'payee',
  destinationPhone: 'phone',
  paymentMethod: 'operator',
  phone: 'phone',
  reference: 'reference',
  scheduledAt: 'moment',
}
