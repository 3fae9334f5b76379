import type { Reply } from './http.ts'
import { json } from './http.ts'
import type { SimulatedOperation } from './model.ts'
import { operators, poolIdentifier } from './operators.ts'
import type { GsmaCategory, GsmaFault } from './reasons.ts'
import { gsmaFault } from './reasons.ts'

export const currency = 'XOF'
const pollLimit = 100

const statusOf: Readonly<Record<GsmaCategory, number>> = {
  businessRule: 400,
  validation: 400,
  authorisation: 401,
  identification: 404,
  internal: 500,
  serviceUnavailable: 503,
}

type Body = Readonly<Record<string, unknown>>

/** Returns an error object of the GSMA Mobile Money API. @param at milliseconds of the simulator's clock */
export function faultBody(fault: GsmaFault, at: number): Body {
  return {
    errorCategory: fault.category,
    errorCode: fault.code,
    errorDescription: fault.description,
    errorDateTime: isoTime(at),
    ...(fault.detail ? { errorParameters: [{ key: 'reason', value: fault.detail }] } : {}),
  }
}

/** Makes an answer of an error object, with the status of its category. */
export function faultReply(fault: GsmaFault, at: number): Reply {
  return json(statusOf[fault.category], faultBody(fault, at), { 'x-date': isoTime(at) })
}

/** Returns the request state object of the GSMA API. Clients poll it by the server's correlation id. */
export function requestState(operation: SimulatedOperation): Body {
  const { operator, state, refusal, kind, callbackUrl, expiresAt, changedAt } = operation
  const profile = operators[operator]
  const settled = state === 'completed' || state === 'reversed'
  return {
    serverCorrelationId: operation.serverCorrelationId,
    status: settled ? 'completed' : state,
    notificationMethod: callbackUrl && profile.notification === 'callback' ? 'callback' : 'polling',
    ...(expiresAt === null ? {} : { expiryTime: isoTime(expiresAt) }),
    pollLimit,
    ...(settled ? { objectReference: operation.id } : {}),
    ...(refusal ? { [profile.errorField]: faultBody(gsmaFault(refusal, kind), changedAt) } : {}),
  }
}

/** Returns an operation as the transaction object of the GSMA API. */
export function transactionBody(operation: SimulatedOperation): Body {
  const { kind, refusal, description, clientReference, originalId } = operation
  const customer = [{ key: 'msisdn', value: operation.msisdn ?? '' }]
  const own = [{ key: 'accountid', value: poolIdentifier }]
  return {
    transactionReference: operation.id,
    transactionStatus: operation.state,
    type: { collect: 'merchantpay', disburse: 'disbursement', reverse: 'reversal' }[kind],
    amount: operation.amount,
    currency,
    debitParty: kind === 'collect' ? customer : own,
    creditParty: kind === 'collect' ? own : customer,
    fees: [{ feeType: 'transaction', feeAmount: operation.fee, feeCurrency: currency }],
    transactionReceipt: operation.reference,
    requestingOrganisationTransactionReference: clientReference,
    ...(description ? { descriptionText: description } : {}),
    ...(originalId ? { originalTransactionReference: originalId } : {}),
    ...(refusal ? { customData: [{ key: 'errorCode', value: gsmaFault(refusal, kind).code }] } : {}),
    creationDate: isoTime(operation.createdAt),
    modificationDate: isoTime(operation.changedAt),
  }
}

export function isoTime(at: number): string {
  return new Date(at).toISOString()
}
