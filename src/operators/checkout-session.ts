import type { CheckoutSettings } from '../config/operators.ts'
import { invariant } from '../shared/invariant.ts'
import { currency } from '../shared/money.ts'
import { webhookAddress } from './callback-address.ts'
import { parseCheckoutCallback } from './checkout-session-callback.ts'
import { createCheckoutInitiation } from './checkout-session-initiate.ts'
import { createCheckoutQuery } from './checkout-session-query.ts'
import { checkoutWallet } from './checkout-session-wallet.ts'
import { createCheckoutWire } from './checkout-session-wire.ts'
import type { CancelOutcome, CollectRequest, DriverDeps, OperatorDriver } from './operator.ts'
import { oneLine } from './one-line.ts'

/** The greatest lengths that the protocol allows. */
const reasonMax = 40

/**
 * Makes the driver of the hosted-checkout protocol: the customer pays on a page of the operator, and money
 * leaves by payouts. Signed webhooks report outcomes but prove none: the service asks the operator.
 */
export function createCheckoutDriver(settings: CheckoutSettings, deps: DriverDeps): OperatorDriver {
  const { clock, log } = deps
  const wire = createCheckoutWire(settings, clock)
  const questions = createCheckoutQuery(settings, wire, clock, log)
  const initiate = createCheckoutInitiation(settings, wire, questions, clock, log)

  return {
    provider: settings.provider,
    name: settings.driver,
    capabilities: {
      action: 'redirect',
      // The operator answers a repeated payout (with the same key) with the first payout. Before the driver
      // creates a session again, it searches for the session by our reference.
      createIsIdempotent: true,
      queryByCorrelationId: true,
      disburseIsSynchronous: true,
      reversal: 'full',
      reversalWindowHours: 72,
      cancel: true,
      partyLookup: false,
      statement: 'paged',
      callbacks: 'signed',
      promptTtlSeconds: 1_800,
    },
    callbackUrl: () => webhookAddress(deps.callbackUrl, settings.provider),

    collect: (request, ctx) => initiate.session(request, sessionBody(request), ctx),

    disburse(request, ctx) {
      const reason = oneLine(request.description ?? '', reasonMax)
      const body = {
        currency,
        receive_amount: String(request.amount),
        mobile: request.payee,
        client_reference: request.handle.clientRef,
        ...(reason === '' ? {} : { payment_reason: reason }),
      }
      return initiate.payout(request, body, ctx)
    },

    reverse: (request, ctx) => initiate.reversal(request, ctx),
    query: questions.query,

    async cancel(handle, ctx): Promise<CancelOutcome> {
      const sessionId = handle.sessionId ?? (await openSession())
      if (sessionId === undefined) return 'unknown'
      const result = await initiate.expire(sessionId, handle, ctx)
      if (result.kind !== 'answered') return 'unknown'
      if (result.status === 200) return 'cancelled'
      return result.status === 409 ? 'too_late' : 'unknown'

      async function openSession(): Promise<string | undefined> {
        const found = await questions.search('session', handle, ctx)
        return found.kind === 'found'
          ? found.records.findLast(({ stands }) => stands === 'open')?.id
          : undefined
      }
    },

    ...checkoutWallet(settings, wire, clock),
    parseCallback: (raw) => parseCheckoutCallback(raw, settings),
    close: () => wire.close(),
  }

  function sessionBody(request: CollectRequest) {
    const { amount, handle, payer, successUrl, cancelUrl } = request
    invariant(
      successUrl && cancelUrl,
      'operators: a hosted checkout needs the pages to which the browser returns',
    )
    return {
      amount: String(amount),
      currency,
      success_url: successUrl,
      error_url: cancelUrl,
      client_reference: handle.clientRef,
      ...(settings.payerField !== null && payer !== undefined ? { [settings.payerField]: payer } : {}),
    }
  }
}
