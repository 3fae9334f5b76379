const second = 1_000
const minute = 60 * second
const hour = 60 * minute

/**
 * Every bound that a caller, a merchant or an operator can meet: amounts, pages, bodies, queues, timeouts.
 * What bounds one mechanism alone stands beside it.
 * The unit is the last word of a name. Source in brackets: specification (Limits), decisions, or a choice
 * with its reason.
 */
export const limits = {
  /** Smallest collection (specification: Limits). */
  collectAmountMinXof: 100,
  /** Smallest disbursement: deposits, payouts, bulk pay (specification: Limits). */
  disburseAmountMinXof: 1_000,
  /** Largest amount of one `/pay` or `/deposit` (specification: Limits). */
  amountMaxXof: 1_000_000,

  /** Largest payout. Choice: the million is of `/pay` and `/deposit`; who is paid out may be a supplier. */
  payoutAmountMaxXof: 100_000_000,
  /** Furthest day that a payout is scheduled for (decisions: Endpoints). */
  payoutScheduleMaxMs: 366 * 24 * hour,
  /** What nobody approved by then is cancelled (decisions: Money and states). */
  approvalLifetimeMs: 7 * 24 * hour,

  /** Largest gift to a sandbox merchant. Choice: a billion francs, so that sums stay exact in JSON. */
  fundAmountMaxXof: 1_000_000_000,

  /** List pages (specification: Limits; default in decisions). */
  pageSizeMax: 100,
  pageSizeDefault: 20,
  /** Exports: rows that are read at once. Choice: two at a time, for each holds a session while it reads. */
  exportPageRows: 1_000,
  exportsPerMerchantMax: 2,
  /** Choice: a deeper offset is a mistake or an attack; cursors reach everything. */
  offsetMax: 1_000_000_000,
  /** Rows that are passed over without asking the counts where the page lies. */
  offsetNearMax: 1_000,

  /** References (decisions: Endpoints). */
  referenceLengthMax: 100,
  descriptionLengthMax: 255,
  /** Beneficiaries (decisions: Endpoints). */
  beneficiaryNameLengthMax: 200,
  bankAccountLengthMin: 5,
  bankAccountLengthMax: 34,
  /** Longest e-mail address that can be delivered to (RFC 5321). */
  emailLengthMax: 254,
  urlLengthMax: 2_048,

  /** `POST /auth` (specification: Limits). */
  authAttemptsMax: 20,
  authWindowMs: 15 * minute,
  tokenHoursMin: 1,
  tokenHoursMax: 720,
  tokenHoursDefault: 24,
  /** A revoked key, token or account is dead everywhere within a second (decisions: Authentication). */
  credentialFreshMs: 400,
  tokenCacheMax: 5_000,
  /** Merchants, tokens and addresses whose use is remembered by one process. */
  allowanceNamesMax: 20_000,

  /** A collection that nobody confirms (specification: Limits). */
  collectionLifetimeMs: 24 * hour,
  /** One operator query per transaction in this time, whoever asks (decisions: Money and states). */
  operatorQueryIntervalMs: 3 * second,
  /** An operator's first answer to a collection must come within this time; later it is `unknown`. */
  collectDeadlineMs: 10 * second,
  operatorQueryDeadlineMs: 5 * second,
  /** A payment whose first answer never came back (the process died) is asked about after this time. */
  firstCheckMs: 12 * second,
  /**
   * After its expiry a collection is asked about once an hour for a week: late money is real. Choice: a week.
   */
  lateCheckMs: 1 * hour,
  lateChecksForMs: 7 * 24 * hour,
  /**
   * A prompt that never left is sent again for this long; later the customer is gone. (design: operators,
   * 2.4)
   */
  resendForMs: 1 * minute,
  /**
   * So long after a payment an operator that calls nobody back is asked whether it was taken back. Choice:
   * soon, and once after its books of the day are closed.
   */
  reversalChecksMs: [1 * minute, 10 * minute, 1 * hour, 24 * hour],

  /** `POST /deposit` answers after this time, whatever is known by then (decisions: Endpoints). */
  depositWaitMs: 20 * second,
  /** An operator's first answer to a disbursement; longer where that answer is its outcome. */
  disburseDeadlineMs: 10 * second,
  disburseSyncDeadlineMs: 18 * second,
  /** What provably never left is tried again for so long. Choice: while a caller waits; for a day. */
  depositUnsentForMs: 15 * second,
  payoutUnsentForMs: 24 * hour,
  /** Somebody is called about a disbursement that its operator gives no account of for so long. Choice. */
  disbursementAlarmMs: 24 * hour,
  /** Payouts that one process sends to one operator at a time. */
  payoutsInFlightMax: 32,
  /** How often it is looked for payouts that are due. */
  payoutsDueEveryMs: 1 * second,
  /** How often the jobs of processes that are gone are taken back. */
  jobsRecoverEveryMs: 1 * second,

  /** How often each operator's due requests are looked for; a callback does not wait for it. */
  resolveEveryMs: 500,
  /** Requests that one job run takes. */
  dueRequestsMax: 32,
  /**
   * No second call for an operation may start while the first may still arrive: deadline and late arrival.
   */
  operatorFenceMs: 30 * second,

  /** Idempotency keys (decisions: Everywhere). */
  idempotencyKeyLengthMax: 255,
  idempotencyKeptMs: 30 * 24 * hour,
  idempotencyRetryS: 1,
  idempotencySweepMs: 1 * hour,
  /** Choice: longer than a deposit waits for its operator; run twice it makes one thing anyway. */
  idempotencyLeaseMs: 25 * second,

  /** Bodies (decisions: 413). Choice: the largest `/pay` body is below 8 KiB. */
  bodyMaxBytes: 100 * 1_024,
  jsonDepthMax: 20,
  headerMaxBytes: 16 * 1_024,
  /** A client that dribbles its request is let go. (design: reliability, section 8) */
  headersTimeoutMs: 10 * second,
  requestTimeoutMs: 15 * second,
  keepAliveMs: 65 * second,

  /** Overload (design: reliability, section 9). */
  overloadRetryS: 1,
  /** How often it is looked whether the event loop is late, and what is too late. */
  loopSampleMs: 100,
  loopDelayMaxMs: 100,
  /** Choice: a fifth of the second that a client waits. */
  databaseDelayMaxMs: 200,
  /** Places that always stay. Choice: a fifth of them, for dashboards, is 32 clients that wait. */
  placesMin: 160,
  /** A GraphQL query that may give so many objects is a dashboard's. Choice: a page of REST. */
  dashboardCostMin: 100,

  /** Statements shared by concurrent money requests (design: performance, section 2). */
  batchSizeMax: 64,
  /** Of these, requests of one merchant while others wait. */
  batchShareMax: 16,
  batchLanesMax: 2,
  batchQueueMax: 2_000,

  /** GraphQL documents (design: graphql, section 8). */
  graphqlTokensMax: 2_000,
  graphqlDepthMax: 12,
  /** Fields and fragments that a document unfolds into. */
  graphqlSelectionsMax: 5_000,
  /** Fields at one place of the answer, equal ones too: validation compares each with each. */
  graphqlBreadthMax: 200,
  graphqlAliasesMax: 30,
  graphqlRootAliasesMax: 20,
  graphqlDirectivesMax: 20,
  graphqlErrorsMax: 5,
  /** Parsed documents that are kept. */
  graphqlDocumentsMax: 500,
  /** Objects that one operation may give. */
  graphqlCostMax: 10_000,
  /** Choice: ten thousand objects of 200 bytes each. */
  graphqlAnswerMaxBytes: 2 * 1_024 * 1_024,
  /** Characters of an error: what a caller sent is not sent back at length. */
  graphqlMessageMax: 500,
  graphqlDeadlineMs: 10 * second,
  /** A deposit waits 20 s for its operator before it answers that the outcome is open. */
  graphqlMutationDeadlineMs: 30 * second,
  /**
   * Tools read the schema 13 levels deep: types of types. Its lists within lists are refused by validation.
   */
  graphqlIntrospectionDepthMax: 20,

  /** Live streams (design: reliability, section 6). */
  subscriptionsPerTokenMax: 20,
  subscriptionsPerMerchantMax: 5_000,
  /**
   * Of these, such as differ: an event is executed once for each. Choice: a few applications, each with a
   * few documents.
   */
  subscriptionKindsPerMerchantMax: 32,
  /** Opened by a token: 5 a second. Choice: whoever lost its connection twice opens all of them again. */
  subscriptionOpensMax: 40,
  subscriptionOpensWindowMs: 8 * second,
  /** A reader whose connection stays full for this long is cut off; it comes back with its cursor. */
  streamStallMs: 30 * second,
  eventPageMax: 100,
  eventRingMax: 1_000,
  eventPollMs: 1 * second,
  /** A look at the log that failed is repeated after this time, then after twice as long each time. */
  eventRetryMs: 100,
  eventRetryMaxMs: 2 * second,
  /** Events are numbered at most this often. Choice: nobody notices, and every run is a commit. */
  eventPaceMs: 20,
  webSocketPayloadMaxBytes: 64 * 1_024,
  /** Sockets that have not shown a token, per address; with one, per token and per merchant. */
  webSocketsPerAddressMax: 100,
  webSocketsPerTokenMax: 20,
  webSocketsPerMerchantMax: 5_000,
  /** Operations under way on one socket: it has one token, thus at most 20 subscriptions. */
  webSocketOperationsMax: 64,
  webSocketInitMs: 3 * second,
  webSocketPingMs: 15 * second,
  /** Bytes that may wait in a socket before its reader is held back. */
  webSocketBufferMaxBytes: 256 * 1_024,

  /** Furthest step of the sandbox clock: schedules reach 366 days ahead. */
  clockStepMs: 400 * 24 * hour,
  /** Its last moves that are known again when their request is repeated. Choice: more than a minute's. */
  clockMovesKept: 1_000,

  /** SIGTERM to exit (issue: within 10 s). */
  drainMs: 7 * second,
  /** Then the operators' answers that are still awaited; what comes later is asked for at the next start. */
  landMs: 1 * second,
  /** The books are proven so often (design: reliability, 1.4), from their first row once a day (R30). */
  auditEveryMs: 1 * minute,
  auditWholeEveryMs: 24 * hour,
  auditTimeoutMs: 5 * minute,
  /** How often what changed in the numbers of transactions is added to their counts, and how much at once. */
  countsFoldMs: 1 * second,
  countsFoldMax: 20_000,
} as const
