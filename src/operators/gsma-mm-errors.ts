import type { FailureReason } from './failure-reasons.ts'
import type { OperationKind, Refusal } from './operator.ts'
import type { WireRecord } from './wire-record.ts'

type ByKind = Readonly<Record<OperationKind, FailureReason>>

const limitOfDebited: ByKind = {
  collect: 'PAYER_LIMIT_REACHED',
  disburse: 'PLATFORM_LIMIT_REACHED',
  reverse: 'PLATFORM_LIMIT_REACHED',
}
const limitOfCredited: ByKind = {
  collect: 'PLATFORM_LIMIT_REACHED',
  disburse: 'PAYEE_LIMIT_REACHED',
  reverse: 'NOT_REVERSIBLE',
}

/**
 * The failure reasons of the error codes of the GSMA Mobile Money API 1.2, in lower case. For some codes the
 * reason depends on the operation, because the debited account is the customer's in a collection, and ours in
 * a disbursement. Any other code becomes UNSPECIFIED: most are about mandates, quotes, identity documents,
 * links and bills, which the service does not use.
 */
const reasonsByCode = new Map<string, FailureReason | ByKind>(
  Object.entries({
    requestdeclined: { collect: 'PAYER_DECLINED', disburse: 'PAYEE_NOT_ALLOWED', reverse: 'NOT_REVERSIBLE' },
    servicingpartyauthorisationerror: {
      collect: 'PAYER_AUTH_FAILED',
      disburse: 'UNSPECIFIED',
      reverse: 'UNSPECIFIED',
    },
    requestingpartyauthorisationerror: {
      collect: 'PAYER_NOT_ALLOWED',
      disburse: 'CREDENTIALS_REJECTED',
      reverse: 'CREDENTIALS_REJECTED',
    },
    clientauthorisationerror: 'CREDENTIALS_REJECTED',
    identifiererror: { collect: 'PAYER_NOT_FOUND', disburse: 'PAYEE_NOT_FOUND', reverse: 'NOT_REVERSIBLE' },
    incorrectstate: {
      collect: 'PAYER_NOT_ALLOWED',
      disburse: 'PAYEE_NOT_ALLOWED',
      reverse: 'NOT_REVERSIBLE',
    },
    insufficientfunds: {
      collect: 'PAYER_INSUFFICIENT_FUNDS',
      disburse: 'FLOAT_INSUFFICIENT',
      reverse: 'FLOAT_INSUFFICIENT',
    },
    dailyvolumelimitexceeded: limitOfDebited,
    dailyvaluelimitexceeded: limitOfDebited,
    weeklyvolumelimitexceeded: limitOfDebited,
    weeklyvaluelimitexceeded: limitOfDebited,
    monthlyvolumelimitexceeded: limitOfDebited,
    monthlyvaluelimitexceeded: limitOfDebited,
    accountmaxtotalvolumeexceeded: limitOfDebited,
    accountmaxtotalvalueexceeded: limitOfDebited,
    maxbalanceexceeded: limitOfCredited,
    lessthantransactionminvalue: 'AMOUNT_OUT_OF_RANGE',
    greaterthantransactionmaxvalue: 'AMOUNT_OUT_OF_RANGE',
    negativevalue: 'AMOUNT_OUT_OF_RANGE',
    currencynotsupported: 'CURRENCY_NOT_SUPPORTED',
    samepartieserror: 'SAME_PARTIES',
    transactiontypeerror: 'OPERATION_NOT_SUPPORTED',
    formaterror: 'INVALID_REQUEST',
    lengtherror: 'INVALID_REQUEST',
    mandatoryvaluenotsupplied: 'INVALID_REQUEST',
    invalidoffset: 'INVALID_REQUEST',
  } as const),
)

/**
 * The failure reasons of generic errors, by the value of an error parameter named `reason`. The standard has
 * no codes for them.
 */
const reasonsByDetail = new Map<string, FailureReason>(
  Object.entries({
    subscriberbusy: 'PAYER_BUSY',
    promptexpired: 'PAYER_TIMEOUT',
    cancelledbyrequester: 'CANCELLED',
    duplicatewindow: 'DUPLICATE_WINDOW',
    alreadyreversed: 'ALREADY_REVERSED',
  } as const),
)

/** An error object of the standard, in any of its spellings. */
export interface GsmaError {
  category: string
  /** The code as the operator wrote it; `key` is the same in lower case, for comparisons. */
  code: string
  key: string
  message: string | undefined
  detail: string | undefined
}

/**
 * Reads an error object. Returns undefined if the record is not an error object: it has no code or no
 * category.
 */
export function readGsmaError(record: WireRecord | undefined): GsmaError | undefined {
  const code = record?.text('errorCode')
  const category = record?.word('errorCategory')
  if (!record || code === undefined || category === undefined) return undefined
  const parameters = record.list('errorParameters')
  return {
    category,
    code,
    key: code.toLowerCase(),
    message: record.text('errorDescription'),
    detail: parameters?.find((parameter) => parameter.word('key') === 'reason')?.word('value'),
  }
}

/**
 * Returns the refusal that an operator's error means for an operation of this kind. Without an error, its
 * reason is UNSPECIFIED.
 */
export function gsmaRefusal(error: GsmaError | undefined, kind: OperationKind, digest: string): Refusal {
  if (!error) return { reason: 'UNSPECIFIED', code: '', digest }
  const detailed = error.detail === undefined ? undefined : reasonsByDetail.get(error.detail)
  const mapped = detailed ?? reasonsByCode.get(error.key) ?? 'UNSPECIFIED'
  const reason = typeof mapped === 'string' ? mapped : mapped[kind]
  return { reason, code: error.detail ?? error.code, message: error.message, digest }
}
