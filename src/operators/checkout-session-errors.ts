import type { FailureReason } from './failure-reasons.ts'
import type { OperationKind, Refusal } from './operator.ts'
import type { WireRecord } from './wire-record.ts'

type ByKind = Readonly<Record<OperationKind, FailureReason>>

/**
 * The failure reasons of the checkout protocol's codes, for errors of requests, payments and payouts. A code
 * that does not prove a refusal, such as `service-unavailable` or `idempotency-mismatch`, is not listed.
 */
const reasonsByCode = new Map<string, FailureReason | ByKind>(
  Object.entries({
    'insufficient-funds': {
      collect: 'PAYER_INSUFFICIENT_FUNDS',
      disburse: 'FLOAT_INSUFFICIENT',
      reverse: 'FLOAT_INSUFFICIENT',
    },
    'payer-not-found': 'PAYER_NOT_FOUND',
    'payer-mobile-mismatch': 'PAYER_MISMATCH',
    'payer-limit-exceeded': 'PAYER_LIMIT_REACHED',
    'payer-authentication-failed': 'PAYER_AUTH_FAILED',
    'payer-busy': 'PAYER_BUSY',
    'blocked-account': 'PAYER_NOT_ALLOWED',
    'customer-age-restricted': 'PAYER_NOT_ALLOWED',
    'cross-border-payment-not-allowed': 'PAYER_NOT_ALLOWED',
    'recipient-account-inactive': 'PAYEE_NOT_FOUND',
    'recipient-account-blocked': 'PAYEE_NOT_ALLOWED',
    'recipient-minor': 'PAYEE_NOT_ALLOWED',
    'country-mismatch': 'PAYEE_NOT_ALLOWED',
    'recipient-limit-exceeded': 'PAYEE_LIMIT_REACHED',
    'recipient-name-mismatch': 'PAYEE_NAME_MISMATCH',
    'kyb-limits-exceeded': 'PLATFORM_LIMIT_REACHED',
    'currency-mismatch': 'CURRENCY_NOT_SUPPORTED',
    'request-validation-error': 'INVALID_REQUEST',
    'no-matching-api-key': 'CREDENTIALS_REJECTED',
    'missing-auth-header': 'CREDENTIALS_REJECTED',
    'invalid-auth': 'CREDENTIALS_REJECTED',
    'api-key-not-provided': 'CREDENTIALS_REJECTED',
    'api-key-revoked': 'CREDENTIALS_REJECTED',
    'invalid-wallet': 'CREDENTIALS_REJECTED',
    'disabled-wallet': 'CREDENTIALS_REJECTED',
    'payment-failure': 'UNSPECIFIED',
    'checkout-refund-failed': 'NOT_REVERSIBLE',
    'checkout-session-not-found': 'NOT_REVERSIBLE',
    'payout-not-found': 'NOT_REVERSIBLE',
    'payout-reversal-not-possible': 'NOT_REVERSIBLE',
    'payout-reversal-time-limit-exceeded': 'NOT_REVERSIBLE',
    'payout-reversal-account-terminated': 'NOT_REVERSIBLE',
  } as const),
)

/** Reads `{code, message}` or `{error_code, error_message}`; undefined if the record has no code. */
export function readCheckoutError(
  record: WireRecord | undefined,
): { code: string; message: string | undefined } | undefined {
  const code = record?.text('code', 'error_code')
  return code === undefined ? undefined : { code, message: record?.text('message', 'error_message') }
}

/**
 * Returns the refusal that an error proves for an operation of this kind; undefined if its code proves
 * nothing.
 */
export function checkoutRefusal(
  error: { code: string; message: string | undefined },
  kind: OperationKind,
  digest: string,
): Refusal | undefined {
  const mapped = reasonsByCode.get(error.code.toLowerCase())
  if (mapped === undefined) return undefined
  return { reason: typeof mapped === 'string' ? mapped : mapped[kind], ...error, digest }
}
