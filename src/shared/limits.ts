import { peopleLimits } from './people-limits.ts'
import { webhookLimits } from './webhook-limits.ts'

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
  /** Highest amount from which on payouts wait for a person. Choice: above any batch. */
  approvalThresholdMaxXof: 1_000_000_000_000,
  /** What nobody approved by then is cancelled (decisions: Money and states). */
  approvalLifetimeMs: 7 * 24 * hour,
  /** People who must approve one thing, at most (issue 6), and how long the reason of a rejection may be. */
  approvalsRequiredMax: 3,
  /** Who joined a team, or got a higher role, is no approver for so long; the database says so as well. */
  approverWaitMs: 24 * hour,
  rejectionReasonLengthMax: 200,

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
  merchantNameLengthMax: 200,
  bankAccountLengthMin: 5,
  bankAccountLengthMax: 34,
  /** Payment links (decisions: Endpoints). */
  linkTitleLengthMax: 200,
  linkDescriptionLengthMax: 1_000,
  linkSlugLengthMin: 3,
  linkSlugLengthMax: 64,
  linkSlugMadeLength: 10,
  linkUsageLimitMax: 1_000_000_000,
  /** The form of a link's page, and pages of one address that wait live. Choice: many share an address. */
  linkFormMaxBytes: 4 * 1_024,
  linkStreamsPerAddressMax: 300,
  /** Forms of links that are kept as they were drawn. Choice: some megabytes at most. */
  drawnFormsMax: 1_000,
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
  /** Sessions of people: at most so long, and so long without a request (design: reliability, section 7). */
  sessionHours: 12,
  sessionIdleMs: 1 * hour,
  /** Devices on which one member is signed in; one more ends the oldest. */
  sessionsPerMemberMax: 20,
  /** API keys of a merchant that live at once, and how far ahead one may expire. Choice. */
  apiKeysMax: 500,
  apiKeyLifetimeMaxMs: 10 * 366 * 24 * hour,
  apiKeyNameLengthMax: 100,
  /** Highest limit that a key can have, and its addresses. Choice: a token of them stays a small header. */
  capMaxXof: 1_000_000_000_000,
  capAddressesMax: 20,
  /** Entries of an address whitelist (design: reliability, section 7). */
  ipWhitelistMax: 50,
  networkLengthMax: 64,
  /** Alerts of addresses that were turned away, in the window of `POST /auth`: of each and of all. Choice. */
  blockedAlertsPerAddressMax: 1,
  blockedAlertsPerMerchantMax: 10,
  /** How often it is noted that a credential was used. */
  lastUseEveryMs: 1 * minute,
  /** Merchants, tokens and addresses whose use is remembered by one process. */
  allowanceNamesMax: 20_000,
  /** So long the database may take to count a request; then this process counts by itself. Choice. */
  allowanceWaitMs: 250,
  /** Of what a merchant may ask, for one token: while it runs wild the others go on. Choice. */
  tokenShare: 0.8,

  ...peopleLimits,

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
  /**
   * Somebody is called about a disbursement that its operator gives no account of for so long, or that is out
   * of reach, and at each question from then on: one an hour at most. Choice: it never fails by its age, for
   * it may have been paid, and its money stays set aside; only the operator's word ends it.
   */
  disbursementAlarmMs: 24 * hour,
  /** Payouts that one process sends to one operator at a time. */
  payoutsInFlightMax: 32,
  /** Places that become free within this time are filled by one statement, unless half of them are. */
  payoutsPaceMs: 20,
  /** What payouts led to within this time is one statement. */
  payoutsSettlePaceMs: 10,
  /** Recipients of a batch and of one call at most (decisions: Endpoints); problems that are listed. */
  batchRecipientsMax: 10_000,
  batchProblemsShown: 100,
  /** Accounts that a batch has more than once: of these so many are listed. */
  batchDuplicatesShown: 100,
  /**
   * A dry run asks an operator about so many numbers, so many at once, and waits for it so long. Choice:
   * what a person waits for; the operator's questions about payments keep most of their lane.
   */
  dryRunLookupsMax: 100,
  dryRunLookupsAtOnce: 4,
  dryRunLookupMs: 3 * second,
  batchTitleLengthMax: 200,
  recipientNameLengthMax: 200,
  /** Recipients of one batch whose operators are being asked (issue 7), and of one operator. */
  batchInFlightMax: 8,
  recipientsInFlightMax: 32,
  /** Answers that wait to be noted before further recipients are sent. */
  recipientsUnnotedMax: 512,
  /** What recipients led to within this time is one statement, and one event of each batch. */
  recipientsSettlePaceMs: 40,
  /** How often it is looked for payouts and recipients that are due. */
  payoutsDueEveryMs: 1 * second,
  /** How often the jobs of processes that are gone are taken back. */
  jobsRecoverEveryMs: 1 * second,
  /** How often a node writes down what it has seen in the database, so that a restore of it is noticed. */
  databaseLookEveryMs: 1 * second,

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
  /** Of a call that brings recipients (decisions: Endpoints). */
  recipientsBodyMaxBytes: 5 * 1_024 * 1_024,
  jsonDepthMax: 20,
  /** Fields of one object, and the length of a name that can be one of ours. */
  jsonNamesMax: 10_000,
  /** Objects and lists of a body over 100 kB. Choice: ten times those of the largest batch. */
  jsonOpeningsMax: 100_000,
  jsonNameLengthMax: 100,
  /** Files of recipients. Choice: two at a time, for each is held while it comes in. */
  importsPerMerchantMax: 2,
  /** What a workbook of recipients may unpack into. Choice: ten times that of the largest that is taken. */
  importUnpackedMaxBytes: 32 * 1_024 * 1_024,
  /** Its cells, and the texts that they share. Choice: 20 columns of the largest batch. */
  importCellsMax: 200_000,
  importTextsMax: 200_000,
  /** Processor time that one workbook may take. Choice: four times that of the largest that is taken. */
  importReadMaxMs: 4 * second,
  /** Lines of a table, empty ones included, and the bytes of one. Choice: time that strangers may take. */
  importLinesMax: 50_000,
  importLineMaxBytes: 16 * 1_024,
  headerMaxBytes: 16 * 1_024,
  /** A client that dribbles its request is let go. (design: reliability, section 8) */
  headersTimeoutMs: 10 * second,
  requestTimeoutMs: 15 * second,
  /** Of a call that brings recipients. Choice: 5 MiB over a line of half a megabit. */
  recipientsTimeoutMs: 90 * second,
  keepAliveMs: 65 * second,
  /** A connection on which no byte moves for so long is closed. Choice: longer than any answer takes. */
  connectionIdleMs: 2 * minute,

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
  /**
   * What went over the wire is kept at most this often. Choice: nobody waits for it, and a payment that is
   * alone shares its commit with nobody.
   */
  exchangesPaceMs: 50,

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
  subscriptionOpensWindowS: 8,
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

  ...webhookLimits,

  /** SIGTERM to exit (issue: within 10 s). */
  drainMs: 7 * second,
  /** Then the operators' answers that are still awaited; what comes later is asked for at the next start. */
  landMs: 1 * second,
  /** What is new in the books is proven so often (design: reliability, 1.4), within this time. */
  auditEveryMs: 1 * minute,
  auditTimeoutMs: 30 * second,
  /** The age of the last proof that raises an alarm, each minute (issue 16). */
  auditAlarmAfterMs: 5 * minute,
  /** All of the books are proven anew once a day (R30), by slices: after each pause for so long. */
  auditWholeEveryMs: 24 * hour,
  auditSliceEveryMs: 2 * second,
  auditSliceTurnMs: 200,
  auditSliceTimeoutMs: 10 * second,
  /** Rows of a slice: fewer where one takes longer. Choice: a snapshot is held for a moment only. */
  auditSliceMs: 1 * second,
  auditRowsMin: 500,
  auditRowsMax: 20_000,
  /** Audit logs are sealed so often (at most 5 s behind: design), so many entries at once. */
  auditSealEveryMs: 2 * second,
  auditSealMax: 1_000,
  /** The heads of audit logs are written outside the database so often (issue 16: at least hourly). */
  auditHeadsEveryMs: 1 * hour,
  /** Entries that one request follows; whoever has more goes on from there. */
  auditVerifyMax: 20_000,
  /** How often what changed in the numbers of transactions is added to their counts, and how much at once. */
  countsFoldMs: 1 * second,
  countsFoldMax: 20_000,
} as const
