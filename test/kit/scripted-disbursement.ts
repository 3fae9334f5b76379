import { vi } from 'vitest'
import type { InitiateOutcome, NotSent, QueryOutcome } from '../../src/operators/operator.ts'
import type { OpenRequest } from '../../src/requests/open-request.ts'
import { claimDue } from '../../src/requests/store.ts'
import { deadlineIn } from '../../src/operators/waiting.ts'
import { sendRequest } from '../../src/requests/send.ts'
import { checkRequest } from '../../src/requests/check.ts'
import type { TestMerchant } from './merchants.ts'
import { balanceOf, fundedMerchant, problemsOf } from './money.ts'
import { beginPayouts, openDeposit, openPayout } from './money-out.ts'
import { scene, script } from './scripted-operator.ts'

export type Subject = 'deposit' | 'payout'
/** Both kinds of disbursement. */
export const kinds: readonly Subject[] = ['deposit', 'payout']

/** A disbursement of 5,000 of the 20,000 francs of a merchant of its own. */
export interface Disbursement {
  subject: Subject
  id: bigint
  requestId: bigint
  merchantId: number
}

/** One that is on record and was not sent. */
export async function begun(
  subject: Subject,
  { merchant, ...more }: { merchant?: TestMerchant; refundOf?: bigint } = {},
): Promise<Disbursement> {
  scene.merchant = merchant ?? (await fundedMerchant(scene.pool, 20_000n))
  const { merchantId } = scene.merchant
  if (subject === 'deposit') {
    const { transactionId, requestId } = await openDeposit(scene.pool, scene.merchant, {
      amount: 5_000n,
      ...more,
    })
    return { subject, id: transactionId, requestId, merchantId }
  }
  const id = await openPayout(scene.pool, scene.merchant, { amount: 5_000n })
  const [row] = await beginPayouts(scene.pool)
  if (row?.payoutId !== id || row.requestId === null) throw new Error('not begun')
  return { subject, id, requestId: row.requestId, merchantId }
}

/** Takes its request as the schedule does, without the wait between two questions. */
export async function take({ requestId }: Disbursement): Promise<OpenRequest> {
  await scene.db.owner.query(
    `UPDATE operator_request SET next_check_at = service_now() - interval '1 s', query_after = NULL
     WHERE id = $1`,
    [requestId],
  )
  const taken = await claimDue(scene.pool, 'OperatorA', 100)
  const request = taken.find(({ id }) => id === requestId)
  if (!request) throw new Error('nothing to take')
  return request
}

/** The first send, and what the operator answers. */
export async function send(it: Disbursement, outcome: InitiateOutcome) {
  script.disburse = [outcome]
  const request = { ...(await take(it)), state: 'sending' as const, checkCount: 0 }
  await scene.db.owner.query('UPDATE operator_request SET check_count = 0 WHERE id = $1', [it.requestId])
  return sendRequest(scene.services, request, 'interactive', deadlineIn(10_000))
}

/** The schedule's turn: the operator is asked, or the request is sent again. */
export async function turn(
  it: Disbursement,
  outcomes: { query?: QueryOutcome[]; disburse?: InitiateOutcome[] },
) {
  Object.assign(script, { query: [], disburse: [], ...outcomes })
  return checkRequest(scene.services, await take(it))
}

export async function standing({ subject, id, merchantId }: Disbursement) {
  const [table, column] = subject === 'deposit' ? ['transaction', 'transaction_id'] : ['payout', 'payout_id']
  const { rows } = await scene.db.owner.query<{
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
  const { available, reserved } = await balanceOf(scene.pool, merchantId)
  return { ...rows[0], held: `${available} + ${reserved}` }
}

/** What its merchant's books lack. */
export function complaints({ merchantId }: Disbursement): Promise<string[]> {
  return problemsOf(scene.pool, merchantId)
}

/** What is logged as an error while `work` runs. */
export async function errorsDuring(work: () => Promise<unknown>): Promise<string[]> {
  const log = vi.spyOn(scene.services.log, 'error')
  try {
    await work()
    return log.mock.calls.map(([, words]) => String(words))
  } finally {
    log.mockRestore()
  }
}

/** Our own account at the operator does not cover it. */
export const floatEmpty: NotSent = {
  kind: 'not_sent',
  cause: 'float_empty',
  refusal: { reason: 'FLOAT_INSUFFICIENT', code: 'insufficientFunds', message: 'The balance is too low.' },
}
