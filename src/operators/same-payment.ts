import { parsePhone } from '../shared/phone.ts'
import type { Provider } from '../shared/providers.ts'
import type { Log } from '../telemetry/log.ts'

/** The payment that an operator was asked about, or asked for. */
export interface AskedPayment {
  correlationId: string
  clientRef: string
  /** The E.164 number of the payee, only for a disbursement: another person may pay a collection. */
  payee?: string | undefined
  /** The operator's id of the request, only if the question named it. */
  requestId?: string | undefined
}

/** The names of a payment that a record of an operator states; a name that the record lacks is undefined. */
export interface StatedPayment {
  clientRef?: string | undefined
  /** The payee's number, in the operator's writing. */
  payee?: string | undefined
  requestId?: string | undefined
}

/**
 * True if a record is about the payment that was asked about. A name that the record does not state proves
 * nothing, because some operators repeat none. The record of another payment is no answer: neither its money
 * nor its refusal counts.
 */
export function isSamePayment(asked: AskedPayment, stated: StatedPayment): boolean {
  return (
    !differs(asked.clientRef, stated.clientRef) &&
    !differs(asked.requestId, stated.requestId) &&
    !isOtherNumber(asked.payee, stated.payee)
  )
}

/** Raises an alarm: an operator answers with the record of another payment. */
export function alarmOtherPayment(
  log: Log,
  provider: Provider,
  asked: AskedPayment,
  stated: StatedPayment,
): void {
  const { correlationId, clientRef, payee, requestId } = asked
  const said = Object.fromEntries(
    Object.entries(stated).map(([name, value]: [string, unknown]) => [
      name,
      typeof value === 'string' ? value.slice(0, saidLengthMax) : undefined,
    ]),
  )
  const line = { provider, correlationId, asked: { clientRef, payee, requestId }, said }
  log.error(line, 'alarm: an operator answers about another payment')
}

/** The greatest length of a stated name in the log. */
const saidLengthMax = 64

/** Our names are UUIDs, which an operator may write in capital letters. */
function differs(asked: string | undefined, stated: string | undefined): boolean {
  return asked !== undefined && stated !== undefined && asked.toLowerCase() !== stated.trim().toLowerCase()
}

/** Some operators hide digits of a number (`+223******01`): such a text states no number. */
function isOtherNumber(asked: string | undefined, stated: string | undefined): boolean {
  if (asked === undefined || stated === undefined) return false
  if (parsePhone(stated) === null && !/^[\d\s().+-]+$/.test(stated)) return false
  const [ours, theirs] = [asked, stated].map((text) => (parsePhone(text) ?? text).replace(/\D/g, ''))
  return theirs !== '' && theirs !== ours
}
