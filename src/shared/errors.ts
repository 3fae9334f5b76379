interface RefusalRow {
  status: number
  /** The name of the GraphQL type. */
  type: string
  message: string
  /** True if the refused payment is recorded, as failed. Every other refusal of a payment records nothing. */
  isOnRecord?: true
}

/**
 * All refusals that a caller may get, each with its REST status, the name of its GraphQL type, and its usual
 * message. The message of an unexpected error is never shown to a caller.
 */
export const refusals = {
  INVALID_INPUT: {
    status: 400,
    type: 'InvalidInputError',
    message: 'The request has missing or invalid fields.',
  },
  UNAUTHENTICATED: {
    status: 401,
    type: 'UnauthenticatedError',
    message: 'The access token is missing, invalid or expired. Sign in again.',
  },
  CREDENTIALS_REJECTED: {
    status: 401,
    type: 'CredentialsRejectedError',
    message: 'The API key or the API secret is not valid.',
  },
  ACCOUNT_INACTIVE: {
    status: 403,
    type: 'AccountInactiveError',
    message: 'This merchant account is inactive. Ask the people who run this service.',
  },
  ADDRESS_NOT_ALLOWED: {
    status: 403,
    type: 'AddressNotAllowedError',
    message:
      'Your IP address is not in the whitelist of this account or of this key. An owner or admin can help.',
  },
  SECOND_FACTOR_REQUIRED: {
    status: 401,
    type: 'SecondFactorRequiredError',
    message: 'Your account has a second factor. Sign in with a code of your authenticator application.',
  },
  FORBIDDEN: {
    status: 403,
    type: 'ForbiddenError',
    message: 'The token lacks a required scope. Sign in for this scope.',
  },
  LIMIT_EXCEEDED: {
    status: 403,
    type: 'LimitExceededError',
    message: 'The payment exceeds a limit of the API key or token. Nothing was recorded.',
  },
  RATE_LIMITED: { status: 429, type: 'RateLimitedError', message: 'Too many requests. Try again later.' },
  NOT_FOUND: { status: 404, type: 'NotFoundError', message: 'Not found: this path or id does not exist.' },
  METHOD_NOT_ALLOWED: {
    status: 405,
    type: 'MethodNotAllowedError',
    message: 'This path does not support the HTTP method.',
  },
  BODY_TOO_LARGE: {
    status: 413,
    type: 'BodyTooLargeError',
    message: 'The request body is too large. Send less at a time.',
  },
  MALFORMED_REQUEST: {
    status: 400,
    type: 'MalformedRequestError',
    message: 'The HTTP request is not well-formed.',
  },
  HEADERS_TOO_LARGE: {
    status: 431,
    type: 'HeadersTooLargeError',
    message: 'The URL and headers of the request are too large. Send fewer of them.',
  },
  REQUEST_TIMEOUT: {
    status: 408,
    type: 'RequestTimeoutError',
    message: 'The request took too long to arrive. Send it again.',
  },
  UNSUPPORTED_MEDIA_TYPE: {
    status: 415,
    type: 'UnsupportedMediaTypeError',
    message: 'The request body must be JSON, with Content-Type: application/json.',
  },
  DUPLICATE_REFERENCE: {
    status: 409,
    type: 'DuplicateReferenceError',
    message: 'A transaction with this reference already exists. Use another reference for another payment.',
  },
  DUPLICATE_PAYOUT: {
    status: 409,
    type: 'DuplicatePayoutError',
    message: 'A payout with this reference already exists. Use another reference for another payout.',
  },
  LINK_CLOSED: {
    status: 410,
    type: 'LinkClosedError',
    message: 'This payment link no longer accepts payments.',
  },
  AMOUNT_CHANGED: {
    status: 409,
    type: 'AmountChangedError',
    message: 'The amount of this payment link has changed since you opened the page. Nothing was recorded.',
  },
  SLUG_TAKEN: {
    status: 409,
    type: 'SlugTakenError',
    message: 'Another payment link already uses this url_slug. Choose another one.',
  },
  ALREADY_MEMBER: {
    status: 409,
    type: 'AlreadyMemberError',
    message: 'A member or an invited person already has this e-mail address.',
  },
  AMBIGUOUS_REFERENCE: {
    status: 409,
    type: 'AmbiguousReferenceError',
    message: 'Several merchants use this reference. Add merchant_id to choose one.',
  },
  IDEMPOTENCY_KEY_REUSED: {
    status: 400,
    type: 'IdempotencyKeyReusedError',
    message:
      'This Idempotency-Key was already used for another request, or for this one by the other API ' +
      '(REST, GraphQL). See what became of that request before you send this one under a new key.',
  },
  IDEMPOTENCY_KEY_BUSY: {
    status: 409,
    type: 'IdempotencyKeyBusyError',
    message: 'The first request with this Idempotency-Key is still running. Repeat it in a moment.',
  },
  INSUFFICIENT_BALANCE: {
    status: 400,
    type: 'InsufficientBalanceError',
    message: 'The available balance does not cover this amount. Nothing was recorded.',
  },
  REFUND_TOO_LARGE: {
    status: 400,
    type: 'RefundTooLargeError',
    message: 'The amount is larger than the part of the payment that is not refunded yet.',
  },
  NOT_REFUNDABLE: {
    status: 409,
    type: 'NotRefundableError',
    message: 'Only a successful payment that has not been reversed can be refunded.',
  },
  STATE_CONFLICT: {
    status: 409,
    type: 'StateConflictError',
    message: 'The present status does not allow this operation.',
  },
  PAYMENT_REFUSED: {
    status: 400,
    type: 'PaymentRefusedError',
    message: 'The operator refused the payment.',
    isOnRecord: true,
  },
  OPERATOR_UNAVAILABLE: {
    status: 400,
    type: 'OperatorUnavailableError',
    message:
      'The operator cannot be reached now. Nothing was recorded. Try later, or use another payment method.',
  },
  OPERATOR_UNREACHABLE: {
    status: 500,
    type: 'OperatorUnreachableError',
    message: 'The operator could not be reached. The payment has not failed. Ask again in a moment.',
  },
  PAYMENTS_OUT_HALTED: {
    status: 503,
    type: 'PaymentsOutHaltedError',
    message: 'Payments out are halted at the moment. Nothing was recorded. Try again later.',
  },
  INTERNAL: {
    status: 500,
    type: 'InternalError',
    message: 'Something went wrong on our side. Try again later.',
  },
  OVERLOADED: {
    status: 503,
    type: 'OverloadedError',
    message: 'The service is busy. Try again in a moment.',
  },
  SERVICE_DOWN: {
    status: 503,
    type: 'ServiceDownError',
    message: 'The service is not available now. Try again later.',
  },
} as const satisfies Record<string, RefusalRow>

export type RefusalCode = keyof typeof refusals

/** A problem of one field. `field` is a path in camelCase (`recipients[3].amount`). */
export interface FieldProblem {
  field: string
  message: string
  /** The line of a table that has the problem: the text of each cell that was read, by its field. */
  row?: Readonly<Record<string, string>>
}

/** The details of a refusal besides its message. Each channel shows the details that its format has. */
export interface RefusalDetail {
  problems?: readonly FieldProblem[]
  requiredScopes?: readonly string[]
  /** The limit that refused the payment, as a field of `limits` in the API. */
  limit?: string
  existingTransaction?: { id: bigint; status: string }
  existingPayout?: { id: bigint; status: string }
  /** Seconds after which another try makes sense. */
  retryAfterS?: number
  /** The problem of the token, for UNAUTHENTICATED (`challenge.ts`). */
  tokenProblem?: string
  [more: string]: unknown
}

/** An expected refusal. Its message is written for the caller and contains no internals. */
export class DomainError extends Error {
  override readonly name = 'DomainError'
  readonly code: RefusalCode
  readonly detail: RefusalDetail

  constructor(code: RefusalCode, message: string = refusals[code].message, detail: RefusalDetail = {}) {
    super(message)
    this.code = code
    this.detail = detail
  }
}

/**
 * The failure of a change whose caller cannot repeat it safely: no reference or key would find what was made.
 * `cause` is the failure itself. If the connection to the database broke, the change may have been made.
 */
export class UnsafeToRepeat extends Error {
  override readonly name = 'UnsafeToRepeat'
}
