import type { GsmaSettings } from '../config/operators.ts'
import { invariant } from '../shared/invariant.ts'
import { currency } from '../shared/money.ts'
import { callbackAddress } from './callback-address.ts'
import { gsmaAccount } from './gsma-mm-account.ts'
import { parseGsmaCallback } from './gsma-mm-callback.ts'
import { createGsmaInitiation } from './gsma-mm-initiate.ts'
import { createGsmaQuery } from './gsma-mm-query.ts'
import { createGsmaWire } from './gsma-mm-wire.ts'
import type { DriverDeps, OperatorDriver } from './operator.ts'
import { wireRecord } from './wire-record.ts'

/** Lengths of the standard's schema. */
const descriptionMax = 160

/**
 * Driver of the GSMA Mobile Money API 1.2 (and 1.1): a prompt on the customer's telephone, with outcomes by
 * callback, by polling, or at once.
 */
export function createGsmaDriver(settings: GsmaSettings, deps: DriverDeps): OperatorDriver {
  const { clock, log } = deps
  const wire = createGsmaWire(settings, clock, log)
  const { query, transactionPath, warnUnmapped } = createGsmaQuery(settings, wire, clock, log)
  const initiate = createGsmaInitiation(settings, wire, clock, log, warnUnmapped)
  const account = gsmaAccount(settings, wire, clock)
  const own = [party(...pair(settings.account))]

  return {
    provider: settings.provider,
    name: settings.driver,
    capabilities: {
      action: 'push',
      createIsIdempotent: true,
      queryByCorrelationId: true,
      disburseIsSynchronous: settings.disburseIsSynchronous,
      reversal: 'partial',
      cancel: true,
      partyLookup: true,
      statement: 'paged',
      callbacks: settings.flow === 'callback' ? 'unsigned' : 'none',
      promptTtlSeconds: 300,
    },
    callbackUrl: (operationId) =>
      callbackAddress(deps.callbackUrl, settings.provider, operationId, deps.callbackSecret),

    async collect(request, ctx) {
      invariant(request.payer, 'operators: a prompt needs the number of its payer')
      const debitParty = [party('msisdn', request.payer)]
      const body = { ...order(request), debitParty, creditParty: own, ...described(request.description) }
      return initiate('collect', '/transactions/type/merchantpay', request, body, ctx)
    },

    async disburse(request, ctx) {
      const creditParty = [party('msisdn', request.payee)]
      const body = { ...order(request), debitParty: own, creditParty, ...described(request.description) }
      return initiate('disburse', '/transactions/type/disbursement', request, body, ctx)
    },

    async reverse(request, ctx) {
      const reference = request.original.operatorRef
      invariant(reference, 'operators: a reversal names the transaction that it undoes')
      const path = `/transactions/${encodeURIComponent(reference)}/reversals`
      return initiate('reverse', path, request, { type: 'reversal', ...order(request) }, ctx)
    },

    query,

    async cancel(handle, ctx) {
      const path = await transactionPath(handle, ctx)
      if (path === null) return 'unknown'
      const result = await wire.call(
        {
          operation: 'cancel',
          method: 'PATCH',
          path,
          correlationId: handle.correlationId,
          body: [{ op: 'replace', path: '/transactionStatus', value: 'cancelled' }],
        },
        ctx,
      )
      if (result.kind !== 'answered') return 'unknown'
      if (result.status === 200 || result.status === 204) return 'cancelled'
      return wireRecord(result.json)?.word('errorCode') === 'incorrectstate' ? 'too_late' : 'unknown'
    },

    ...account,
    parseCallback: (raw) => parseGsmaCallback(raw, settings.statusMap, deps.callbackSecret),
    close: () => wire.close(),
  }

  function order(request: { amount: bigint; handle: { clientRef: string } }) {
    return {
      amount: String(request.amount),
      currency,
      requestingOrganisationTransactionReference: request.handle.clientRef,
      requestDate: clock.now().toISOString(),
    }
  }
}

function party(key: string, value: string) {
  return { key, value }
}

function described(description: string | undefined) {
  return description === undefined ? {} : { descriptionText: description.slice(0, descriptionMax) }
}

/** `accountid:POOL` as its two parts. */
function pair(account: string): [string, string] {
  const colon = account.indexOf(':')
  return [account.slice(0, colon), account.slice(colon + 1)]
}
