const second = 1_000
const hour = 3_600 * second

/** The part of `limits` that bounds webhooks. */
export const webhookLimits = {
  /** Endpoints of a merchant (specification: Limits). */
  webhooksPerMerchantMax: 5,
  /** After a rotation deliveries are signed with both secrets for so long (issue: webhooks). */
  webhookOverlapMs: 24 * hour,
  /** Events that one call sends again. Choice: more than a busy day of one merchant has. */
  webhookReplayMax: 10_000,
  /** Attempts that a delivery shows. Choice: a whole run of the schedule, and some of the run before. */
  webhookAttemptsShown: 16,
  /** One delivery to an endpoint, from its name to the last byte that is read (decisions: Webhooks). */
  webhookDeadlineMs: 10 * second,
  /** Of an answer so much is read, and its beginning kept for the merchant to see. */
  webhookAnswerMaxBytes: 64 * 1_024,
  webhookAnswerKeptBytes: 2 * 1_024,
  /** No receiver may push us further away than this. Choice: the longest wait of the schedule. */
  webhookRetryAfterMaxMs: 24 * hour,
  /** Registering resolves the name. Choice: whoever registers waits for it. */
  webhookResolveMs: 2 * second,

  /**
   * Lanes of webhooks at once in one process; of those that fail fewer: they never fill all places. Choice:
   * a lane whose receiver hangs costs a socket for ten seconds and no session, so there are more places than
   * the endpoints of a hundred merchants fill.
   */
  webhookLanesMax: 512,
  webhookFailingLanesMax: 32,
  /** Failures in a row after which an endpoint is only probed (decisions: Deliveries; SQL says so too). */
  webhookProbeFrom: 5,
  /** Deliveries that a lane takes at once; so many may be sent and not yet noted, for so long. */
  webhookTakeMax: 100,
  webhookUnnotedMs: 50,
  /** What a lane took before is looked at again: its endpoint may have been changed or removed. */
  webhookLookMs: 1 * second,
  /** A lane lets others have its place after this time. */
  webhookLaneMs: 10 * second,
  /** How often it is looked for lanes that are due, and how many are begun at once. */
  webhooksDueEveryMs: 1 * second,
  webhooksDueMax: 500,
  /** What waited so long is given up; what is done with is kept for so long (design: reliability). */
  webhookKeptDays: 30,
  webhookSweptDays: 90,
  webhookSweepMs: 1 * hour,
  webhookSweepMax: 1_000,
} as const
