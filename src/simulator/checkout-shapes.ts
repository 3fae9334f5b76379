import type { SimulatedOperation } from './model.ts'
import { reasons } from './reasons.ts'

type Body = Readonly<Record<string, unknown>>

/**
 * Returns the public fields of a session. @param publicUrl the address under which people reach this
 * simulator
 */
export function sessionBody(session: SimulatedOperation, publicUrl: string): Body {
  const { id, state, refusal, lastError, page } = session
  const settled = state === 'completed' || state === 'reversed'
  const error = refusal ?? lastError
  const code = error && reasons[error].checkout
  return {
    id,
    amount: session.amount,
    currency: 'XOF',
    checkout_status: settled ? 'complete' : state === 'pending' ? 'open' : 'expired',
    payment_status: settled ? 'succeeded' : isCancelled(session) ? 'cancelled' : 'processing',
    last_payment_error: code ? { code, message: reasons[error].message } : null,
    client_reference: session.clientReference || null,
    transaction_id: settled ? session.reference : null,
    restrict_payer_mobile: page?.onlyPayer ?? null,
    payer_mobile: settled ? session.msisdn : null,
    launch_url: `${publicUrl}/c/${id}`,
    success_url: page?.successUrl ?? null,
    error_url: page?.errorUrl ?? null,
    when_created: isoTime(session.createdAt),
    when_expires: session.expiresAt === null ? null : isoTime(session.expiresAt),
    when_completed: session.settledAt === null ? null : isoTime(session.settledAt),
    when_refunded: state === 'reversed' ? isoTime(session.changedAt) : null,
  }
}

/** Returns the public fields of a payout. */
export function payoutBody(payout: SimulatedOperation): Body {
  const { id, state, refusal } = payout
  return {
    id,
    currency: 'XOF',
    receive_amount: payout.amount,
    fee: payout.fee,
    mobile: payout.msisdn,
    status: { pending: 'processing', completed: 'succeeded', failed: 'failed', reversed: 'reversed' }[state],
    client_reference: payout.clientReference || null,
    transaction_id: state === 'pending' || state === 'failed' ? null : payout.reference,
    payout_error: refusal
      ? { error_code: reasons[refusal].payout, error_message: reasons[refusal].message }
      : null,
    timestamp: isoTime(payout.createdAt),
  }
}

/** True if the customer declined or the payment failed; false if the session expired or was withdrawn. */
function isCancelled({ state, refusal }: SimulatedOperation): boolean {
  return state === 'failed' && refusal !== 'expired' && refusal !== 'cancelled'
}

function isoTime(at: number): string {
  return new Date(at).toISOString()
}
