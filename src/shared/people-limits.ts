const minute = 60_000
const hour = 60 * minute

/** The bounds that people meet who sign in, part of `limits` (design: reliability, section 7). */
export const peopleLimits = {
  memberNameLengthMax: 200,
  passwordLengthMin: 12,
  passwordLengthMax: 128,
  /** argon2id (OWASP's minimum): what one hash takes, how many are made at once, how many wait. */
  passwordMemoryKib: 19_456,
  passwordPasses: 2,
  passwordsAtOnceMax: 2,
  passwordQueueMax: 32,
  /** Failed sign-ins: the longest wait, when they are forgotten, and when the merchant is told. */
  signInWaitMaxMs: 15 * minute,
  signInForgetMs: 24 * hour,
  signInAlertFailures: 10,
  /** Failures of one address that cost no time: many people may share it. Choice: ten. */
  signInAddressFailuresFree: 10,
  /**
   * Failures at one account in a window, of all addresses from which the member never signed in: 2,400
   * guesses a day over any number of addresses. Choice.
   */
  signInAccountFailuresMax: 100,
  signInAccountWindowMs: 1 * hour,
  /** Likewise wrong codes of the second factor after the right password, in the same window. Choice. */
  secondFactorFailuresMax: 10,
  invitationLifetimeMs: 72 * hour,
  resetLifetimeMs: 1 * hour,
  /** Requests for a new password. Choice: nobody's letter box is filled. */
  resetsPerAccountMax: 3,
  resetsPerAddressMax: 20,
  resetsWindowMs: 1 * hour,
  /** Letters of sign-ins from new addresses, of one member in that window. Choice. */
  newAddressLettersMax: 3,
  /** Teams that one request writes to. */
  resetLettersMax: 5,
  /** How often what is over is forgotten: sessions, letters, failures. */
  peopleSweepMs: 1 * hour,
} as const
