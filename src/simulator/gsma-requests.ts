import { sha256 } from './credentials.ts'
import type { SimulatorCall } from './http.ts'
import { header, text } from './http.ts'
import type { OperatorKey } from './model.ts'
import { poolIdentifier } from './operators.ts'
import type { GsmaCategory, GsmaFault } from './reasons.ts'
import type { SimulatorContext } from './context.ts'

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
/** Up to eighteen digits without a leading zero: the currency has no fraction. */
const amountPattern = /^[1-9]\d{0,17}$/
/** The length limits of the standard's schema. */
export const textMax = 256
export const descriptionMax = 160

/** An error that stops a request with an error object of the standard. */
export class RequestFault extends Error {
  readonly fault: GsmaFault

  constructor(category: GsmaCategory, code: string, description: string) {
    super(description)
    this.fault = { category, code, description }
  }
}

/**
 * Checks what every request that creates something must have: an `X-CorrelationID` that is a UUID and was not
 * used before (not checked under the fault `no_dedupe`), and a JSON object as body. If `X-Content-Hash` is
 * given, it must match the body.
 * @throws RequestFault
 */
export function readCreation(
  operator: OperatorKey,
  context: SimulatorContext,
  call: SimulatorCall,
): { correlationId: string; body: Readonly<Record<string, unknown>> } {
  const correlationId = header(call, 'x-correlationid')
  if (correlationId === '')
    throw new RequestFault('validation', 'mandatoryValueNotSupplied', 'X-CorrelationID is missing.')
  if (!uuid.test(correlationId))
    throw new RequestFault('validation', 'formatError', 'X-CorrelationID must be a UUID.')
  if (!call.repeats && context.store.correlated(operator, correlationId)) {
    throw new RequestFault('businessRule', 'duplicateRequest', 'This X-CorrelationID was used before.')
  }
  const hash = header(call, 'x-content-hash')
  if (hash !== '' && hash.toLowerCase() !== sha256(call.body)) {
    throw new RequestFault('validation', 'formatError', 'X-Content-Hash is not the SHA-256 of the body.')
  }
  const body = call.object()
  if (!body) throw new RequestFault('validation', 'formatError', 'The body must be a JSON object.')
  return { correlationId, body }
}

/** Returns the callback address that the caller requests; null where it requests none. */
export function callbackUrl(call: SimulatorCall): string | null {
  const value = header(call, 'x-callback-url')
  if (value === '') return null
  if (!/^https?:\/\//.test(value) || !URL.canParse(value)) {
    throw new RequestFault('validation', 'formatError', 'X-Callback-URL must be an http(s) address.')
  }
  return value
}

/** Reads the amount in francs. */
export function amountField(body: Readonly<Record<string, unknown>>): bigint {
  if (body['amount'] === undefined)
    throw new RequestFault('validation', 'mandatoryValueNotSupplied', 'amount is missing.')
  const value = text(body, 'amount')
  if (value.startsWith('-'))
    throw new RequestFault('validation', 'negativeValue', 'amount: must be above zero.')
  if (!amountPattern.test(value)) {
    throw new RequestFault(
      'validation',
      'formatError',
      'amount: a text of whole francs without a leading zero.',
    )
  }
  return BigInt(value)
}

/** Reads a text of a bounded length; empty where it is absent. */
export function textField(body: Readonly<Record<string, unknown>>, field: string, most: number): string {
  const value = text(body, field)
  if (value.length > most)
    throw new RequestFault('validation', 'lengthError', `${field}: at most ${most} characters.`)
  return value
}

/** Returns the identifier with the name `key` of a party, such as the payer's number under `msisdn`. */
export function party(body: Readonly<Record<string, unknown>>, field: string, key: string): string {
  const pairs = body[field]
  if (!Array.isArray(pairs) || pairs.length === 0 || pairs.length > 10) {
    throw new RequestFault('validation', 'mandatoryValueNotSupplied', `${field}: one to ten identifiers.`)
  }
  for (const pair of pairs as unknown[]) {
    if (typeof pair !== 'object' || pair === null) continue
    const row = pair as Readonly<Record<string, unknown>>
    if (text(row, 'key').toLowerCase() === key) return text(row, 'value')
  }
  throw new RequestFault('identification', 'identifierError', `${field}: needs the identifier ${key}.`)
}

/** Checks that the other party of a payment is our own account. */
export function checkOwnParty(identifier: string): void {
  if (identifier === poolIdentifier) return
  throw new RequestFault('identification', 'identifierError', 'That account is not the client\u2019s.')
}

/** Reads a number in E.164, with any spelling of the international prefix. */
export function msisdnOf(value: string): string {
  const digits = value.replace(/^(\+|00)/, '').replaceAll(' ', '')
  if (!/^\d{9,15}$/.test(digits))
    throw new RequestFault('validation', 'formatError', 'msisdn: an international number.')
  return `+${digits}`
}

/** Checks a patch (RFC 6902): the only allowed change withdraws the transaction. */
export function checkCancellation(body: string): void {
  const patch = parseJson(body)
  const [step] = Array.isArray(patch) ? (patch as unknown[]) : []
  const change = typeof step === 'object' && step !== null ? (step as Readonly<Record<string, unknown>>) : {}
  const withdraws =
    change['op'] === 'replace' &&
    change['path'] === '/transactionStatus' &&
    text(change, 'value').toLowerCase() === 'cancelled'
  if (withdraws) return
  throw new RequestFault(
    'validation',
    'formatError',
    'The only change is to replace /transactionStatus by "cancelled".',
  )
}

function parseJson(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    return null
  }
}
