import { vi } from 'vitest'
import type { InitiateOutcome, NotSent, QueryOutcome } from '../../src/operators/operator.ts'
import type { OpenRequest } from '../../src/requests/open-request.ts'
import { claimDue } from '../../src/requests/store.ts'
import { deadlineIn } from '../../src/operators/call-limits.ts'
import { sendRequest } from '../../src/requests/send.ts'
import { checkRequest } from '../../src/requests/check.ts'
import type { SignedInMerchant } from './merchants.ts'
import { balanceOf, fundedMerchant, problemsOf } from './money.ts'
import { beginPayouts, openDeposit, openPayout } from './money-out.ts'
import { scripted, script } from './scripted-operator.ts'

export type DisbursementSubject = 'deposit' | 'payout'
/** Both kinds of disbursement. */
export const kinds: readonly DisbursementSubject[] = ['deposit', 'payout']

/** A disbursement of 5,000 of the 20,000 francs of a merchant of its own. */
export interface Disbursement {
  subject: DisbursementSubject
  id: bigint
  requestId: bigint
  merchantId: number
}

/** Records a disbursement that was not sent. */
export async function begun(
  subject: DisbursementSubject,
  { merchant, ...more }: { merchant?: SignedInMerchant; refundOf?: bigint } = {},
): Promise<Disbursement> {
  scripted.merchant = merchant ?? (await fundedMerchant(scripted.pool, 20_000n))
  const { merchantId } = scripted.merchant
  if (subject === 'deposit') {
    const { transactionId, requestId } = await openDeposit(scripted.pool, scripted.merchant, {
      amount: 5_000n,
      ...more,
    })
    return { subject, id: transactionId, requestId, merchantId }
  }
  const id = await openPayout(scripted.pool, scripted.merchant, { amount: 5_000n })
  const [row] = await beginPayouts(scripted.pool)
  if (row?.payoutId !== id || row.requestId === null) throw new Error('not begun')
  return { subject, id, requestId: row.requestId, merchantId }
}

/** Takes its request as the schedule does, without the wait between two questions. */
export async function take({ requestId }: Disbursement): Promise<OpenRequest> {
  await scripted.db.owner.query(
    `UPDATE operator_request SET next_check_at = service_now() - interval '1 s', query_after = NULL
     WHERE id = $1`,
    [requestId],
  )
  const taken = await claimDue(scripted.pool, 'OperatorA', 100)
  const request = taken.find(({ id }) => id === requestId)
  if (!request) throw new Error('nothing to take')
  return request
}

/** Plays the first send and the operator's answer to it. */
export async function send(it: Disbursement, outcome: InitiateOutcome) {
  script.disburse = [outcome]
  const request = { ...(await take(it)), state: 'sending' as const, checkCount: 0 }
  await scripted.db.owner.query('UPDATE operator_request SET check_count = 0 WHERE id = $1', [it.requestId])
  return sendRequest(scripted.services, request, 'interactive', deadlineIn(10_000))
}

/** Plays a turn of the schedule: the operator is asked, or the request is sent again. */
export async function turn(
  it: Disbursement,
  outcomes: { query?: QueryOutcome[]; disburse?: InitiateOutcome[] },
) {
  Object.assign(script, { query: [], disburse: [], ...outcomes })
  return checkRequest(scripted.services, await take(it))
}

export async function stateOf({ subject, id, merchantId }: Disbursement) {
  const [table, column] = subject === 'deposit' ? ['transaction', 'transaction_id'] : ['payout', 'payout_id']
  const { rows } = await scripted.db.owner.query<{
    status: string
    why: string | null
    state: string
    attempt: number
    nextS: number | null
  }>(
    `SELECT s.status, s.failure_reason AS why, r.state, r.attempt,
       extract(epoch FROM r.next_check_at - service_now())::float AS "nextS"
     FROM ${table} s JOIN operator_request r ON r.${column} = s.id WHERE s.id = $1`,
    [id],
  )
  const { available, reserved } = await balanceOf(scripted.pool, merchantId)
  return { ...rows[0], held: `${available} + ${reserved}` }
}

/** The problems of its merchant's books. */
export function complaints({ merchantId }: Disbursement): Promise<string[]> {
  return problemsOf(scripted.pool, merchantId)
}

/** Collects the errors that are logged while `work` runs. */
export async function errorsDuring(work: () => Promise<unknown>): Promise<string[]> {
  const log = vi.spyOn(scripted.services.log, 'error')
  try {
    await work()
    return log.mock.calls.map(([, words]) => String(words))
  } finally {
    log.mockRestore()
  }
}

/** The answer where our own account at the operator does not cover the payment. */
export const floatEmpty: NotSent = {
  kind: 'not_sent',
  cause: 'float_empty',
  refusal: { reason: 'FLOAT_INSUFFICIENT', code: 'insufficientFunds', message: 'The balance is too low.' },
}
