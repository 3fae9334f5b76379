import { type SqlConnection, sqlFunction } from '../database/sql-function.ts'
import { DomainError } from '../shared/errors.ts'

/** The bounds of the wait after failures. Each failure doubles the wait before the next try. */
export interface BackoffPolicy {
  longestMs: number
  /** The time without a failure after which the count begins anew. */
  forgetMs: number
  /** The number of failures of an address, over all accounts, that cause no wait. */
  addressFree: number
  /** The most failures of an account within a window, over all addresses. */
  accountMost: number
  windowMs: number
}

/** The names under which a try to sign in is counted. */
interface Trier {
  account: string
  /** A hash of the account and the address. */
  here: string
  /** The block of addresses (`addressBlock`), over all accounts. */
  block: string
}

const takeSignInTry = sqlFunction('take_sign_in_try', {
  takes: {
    account: 'text',
    here: 'text',
    block: 'text',
    longestMs: 'int',
    forgetMs: 'int',
    addressFree: 'int',
    accountMost: 'int',
    windowMs: 'int',
  },
  gives: { isKnown: 'boolean', failuresHere: 'int', failuresEverywhere: 'int', waitMs: 'int' },
})

const takeFailure = sqlFunction('count_failure', {
  takes: { counted: 'text', most: 'int', windowMs: 'int' },
  gives: 'int',
})

/**
 * Takes one failure back from each name. Names in `waiting` wait no longer; `forgiven` has no failures then.
 */
export const takeBackFailures = sqlFunction('take_back_failures', {
  takes: { names: 'text[]', waiting: 'text[]', forgiven: 'text?' },
  gives: 'void',
})

/** Deletes all failures that were counted under these names. */
export const forgiveFailures = sqlFunction('forgive_failures', {
  takes: { names: 'text[]' },
  gives: 'void',
})

/**
 * Counts a try as a failure, before the credentials are checked. All nodes share the counts.
 * @returns how many failures there are now, and whether the account signed in from this address before
 * @throws DomainError RATE_LIMITED, with the seconds to wait; then nothing is counted
 */
export async function countTry(connection: SqlConnection, trier: Trier, policy: BackoffPolicy) {
  const [taken] = await takeSignInTry(connection, { ...trier, ...policy })
  if (!taken || taken.waitMs > 0) throw tooMany(taken?.waitMs ?? 0)
  return taken
}

/**
 * Counts a failure under a name. A window takes at most `most` of them.
 * @throws DomainError RATE_LIMITED, with the seconds until the window ends; then nothing is counted
 */
export async function countFailure(
  connection: SqlConnection,
  name: string,
  { most, windowMs }: { most: number; windowMs: number },
): Promise<void> {
  const waitMs = await takeFailure(connection, { counted: name, most, windowMs })
  if (waitMs > 0) throw tooMany(waitMs)
}

function tooMany(waitMs: number): DomainError {
  const retryAfterS = Math.max(1, Math.ceil(waitMs / 1_000))
  return new DomainError('RATE_LIMITED', `Too many failed attempts. Wait ${retryAfterS} seconds.`, {
    retryAfterS,
  })
}
