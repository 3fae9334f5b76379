import { DomainError, type RefusalCode, refusals } from './errors.ts'

/**
 * The problems that the token of a request can have, each with its message. A token that this service never
 * signed and a text that is no token have one message, so that a caller who guesses learns nothing. Only a
 * caller with a token of ours learns whether it expired or was revoked.
 */
export const tokenProblems = {
  missing: 'No access token was sent. Sign in, and send the token as Authorization: Bearer TOKEN.',
  malformed: 'The access token is malformed, or this service did not issue it. Sign in again.',
  expired: 'The access token has expired. Sign in again.',
  revoked:
    'The access token was revoked: its key was replaced or has ended, or its session is over. Sign in again.',
} as const

export type TokenProblem = keyof typeof tokenProblems

/** Makes the refusal of a request whose token has this problem. */
export function unauthenticated(tokenProblem: TokenProblem): DomainError {
  return new DomainError('UNAUTHENTICATED', tokenProblems[tokenProblem], { tokenProblem })
}

/**
 * Returns the header `WWW-Authenticate` of a refusal with 401 (RFC 6750, section 3); null for other refusals.
 * A request without a token gets no error in it: its client did not know yet that a token is needed.
 * @param refusal where `tokenProblem` is absent, a statement refused a token after it was accepted
 */
export function challengeOf(refusal: {
  code: RefusalCode
  message: string
  tokenProblem?: TokenProblem | undefined
}): string | null {
  const { code, message, tokenProblem } = refusal
  if (refusals[code].status !== 401) return null
  if (code !== 'UNAUTHENTICATED' || tokenProblem === 'missing') return realm
  return `${realm}, error="invalid_token", error_description="${message}"`
}

const realm = 'Bearer realm="merchant-payments"'
