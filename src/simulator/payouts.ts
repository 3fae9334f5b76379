import { randomBytes } from 'node:crypto'
import { CheckoutFault, readAmount, readBody, readText } from './checkout-requests.ts'
import { payoutBody } from './checkout-shapes.ts'
import { sha256 } from './credentials.ts'
import { isReversible } from './engine.ts'
import type { SimulatorCall, Reply, SimulatorRoute } from './http.ts'
import { header, json, param } from './http.ts'
import type { SimulatedOperation } from './model.ts'
import type { OperatorProfile } from './operators.ts'
import { reasons } from './reasons.ts'
import { partOf } from './scenarios.ts'
import type { SimulatorContext } from './context.ts'

const reversalWindowMs = 3 * 24 * 3_600_000
const searchMax = 100

/** Makes the routes that move money from our wallet at the checkout operator to a customer's, and back. */
export function payoutRoutes(profile: OperatorProfile, context: SimulatorContext): SimulatorRoute[] {
  const find = (call: SimulatorCall) => payoutOr404(profile, context.store.operation(param(call, 'id')))
  return [
    { method: 'POST', pattern: '/payout', handle: (call) => create(profile, context, call) },
    { method: 'GET', pattern: '/payout/:id', handle: (call) => json(200, payoutBody(find(call))) },
    {
      method: 'POST',
      pattern: '/payout/:id/reverse',
      handle: (call) => reverse(profile, context, find(call)),
    },
    {
      method: 'GET',
      pattern: '/payouts/search',
      handle: (call) => {
        const reference = call.query.get('client_reference') ?? ''
        const payouts = context.store
          .withReference(profile.key, reference)
          .filter((row) => row.kind === 'disburse')
        return json(200, { result: payouts.slice(-searchMax).map(payoutBody) })
      },
    },
  ]
}

/** Creates a payout. The same key gives the same payout again; another body under the same key is refused. */
function create(profile: OperatorProfile, context: SimulatorContext, call: SimulatorCall): Reply {
  const key = header(call, 'idempotency-key')
  if (key === '' || key.length > 255) {
    throw new CheckoutFault(
      400,
      'request-validation-error',
      'Idempotency-Key: required, at most 255 characters.',
    )
  }
  const bodyHash = sha256(call.body)
  const before = call.repeats ? undefined : context.store.correlated(profile.key, key)
  if (before && before.bodyHash !== bodyHash) {
    throw new CheckoutFault(409, 'idempotency-mismatch', 'This key was used with another body.')
  }
  return answer(before ?? open(profile, context, call, key, bodyHash))
}

function open(
  profile: OperatorProfile,
  context: SimulatorContext,
  call: SimulatorCall,
  key: string,
  bodyHash: string,
): SimulatedOperation {
  const body = readBody(call)
  const amount = readAmount(body, 'receive_amount')
  const mobile = readText(body, 'mobile', 20)
  if (!/^\+\d{9,15}$/.test(mobile)) {
    throw new CheckoutFault(422, 'request-validation-error', 'mobile: must be in E.164.')
  }
  return context.engine.open({
    id: `pt-${randomBytes(12).toString('hex')}`,
    operator: profile.key,
    kind: 'disburse',
    mode: 'synchronous',
    correlationId: key,
    clientReference: readText(body, 'client_reference', 255),
    bodyHash,
    msisdn: mobile,
    amount,
    description: readText(body, 'payment_reason', 40),
    callbackUrl: null,
  })
}

/**
 * Answers a creation. An unknown or blocked recipient is refused at once; any other failure is a failed
 * payout.
 */
function answer(payout: SimulatedOperation): Reply {
  const { act } = partOf(payout.msisdn ?? '')
  if (act.does !== 'refuseAtOnce' || !payout.refusal) return json(200, payoutBody(payout))
  const { payout: code, message } = reasons[payout.refusal]
  throw new CheckoutFault(400, code, message)
}

/** Takes a payout back within three days, with its fee; a repeated request changes nothing. */
function reverse(profile: OperatorProfile, context: SimulatorContext, payout: SimulatedOperation): Reply {
  if (payout.state === 'reversed') return { status: 200 }
  if (!isReversible(payout, BigInt(payout.amount))) {
    throw new CheckoutFault(
      400,
      'payout-reversal-not-possible',
      'Only a payout that succeeded can be reversed.',
    )
  }
  if (context.clock.now() - payout.createdAt > reversalWindowMs) {
    throw new CheckoutFault(
      400,
      'payout-reversal-time-limit-exceeded',
      'A payout can be reversed for three days.',
    )
  }
  const reversal = context.engine.open({
    operator: profile.key,
    kind: 'reverse',
    mode: 'synchronous',
    correlationId: '',
    clientReference: '',
    msisdn: payout.msisdn,
    amount: BigInt(payout.amount),
    description: '',
    callbackUrl: null,
    originalId: payout.id,
  })
  if (!reversal.refusal) return { status: 200 }
  throw new CheckoutFault(400, reasons[reversal.refusal].payout, reasons[reversal.refusal].message)
}

function payoutOr404(
  profile: OperatorProfile,
  operation: SimulatedOperation | undefined,
): SimulatedOperation {
  if (operation?.operator === profile.key && operation.kind === 'disburse') return operation
  throw new CheckoutFault(404, 'payout-not-found', 'There is no such payout.')
}
