const second = 1_000
const minute = 60 * second
const hour = 60 * minute

/**
 * The bounds that callers, merchants and operators meet, where more than one file uses them. A bound that one
 * file uses stands in that file; one that a test shortens is a field of an object there (`sendBounds`).
 * The unit is the last word of a name. The source stands in brackets: a heading of `src/docs/design`, or a
 * choice with its reason.
 */
export const limits = {
  /** Smallest collection (see docs/design/rules.md#bounds). */
  collectAmountMinXof: 100,
  /** Smallest disbursement: deposits, payouts, bulk pay (see docs/design/rules.md#bounds). */
  disburseAmountMinXof: 1_000,
  /** Largest amount of one `/pay` or `/deposit` (see docs/design/rules.md#bounds). */
  amountMaxXof: 1_000_000,

  /** Largest payout. Choice: the million is of `/pay` and `/deposit`; who is paid out may be a supplier. */
  payoutAmountMaxXof: 100_000_000,
  /** What nobody approved by then is cancelled (see docs/design/rules.md#bounds). */
  approvalLifetimeMs: 7 * 24 * hour,

  /** Largest gift to a sandbox merchant. Choice: a billion francs, so that sums stay exact in JSON. */
  fundAmountMaxXof: 1_000_000_000,

  /** List pages (see docs/design/rules.md#bounds). */
  pageSizeMax: 100,
  pageSizeDefault: 20,
  /** Rows that an export reads at once. */
  exportPageRows: 1_000,
  /** Choice: a deeper offset is a mistake or an attack; cursors reach everything. */
  offsetMax: 1_000_000_000,

  descriptionLengthMax: 255,
  /** Beneficiaries (see docs/design/rules.md#bounds). */
  beneficiaryNameLengthMax: 200,
  merchantNameLengthMax: 200,
  bankAccountLengthMin: 5,
  bankAccountLengthMax: 34,
  /** The last part of a payment link's address (see docs/design/rules.md#bounds). */
  linkSlugLengthMin: 3,
  linkSlugLengthMax: 64,
  /** Pages of payment links that one address has open at once. Choice: many share an address. */
  linkStreamsPerAddressMax: 300,
  urlLengthMax: 2_048,

  /** `POST /auth` (see docs/design/rules.md#bounds). */
  authWindowMs: 15 * minute,
  tokenHoursMin: 1,
  tokenHoursMax: 720,
  tokenHoursDefault: 24,
  tokenCacheMax: 5_000,
  /** A session of a person ends after so long without a request (see docs/design/rules.md#people). */
  sessionIdleMs: 1 * hour,
  /** Devices on which one member is signed in; one more ends the oldest. */
  sessionsPerMemberMax: 20,
  /** API keys that a merchant has at once. Choice. */
  apiKeysMax: 500,
  /** Merchants, tokens and addresses whose use is remembered by one process. */
  windowNamesMax: 20_000,
  /** Of what a merchant may ask, for one token: while it runs wild the others go on. Choice. */
  tokenShare: 0.8,

  // People who sign in (see docs/design/rules.md#people).
  passwordLengthMin: 12,
  passwordLengthMax: 128,
  /** So many failed sign-ins are told to the merchant. */
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
  /** Requests for a new password. Choice: nobody's letter box is filled. */
  resetsPerAccountMax: 3,
  resetsPerAddressMax: 20,
  resetsWindowMs: 1 * hour,

  /** A collection that nobody confirms (see docs/design/rules.md#bounds). */
  collectionLifetimeMs: 24 * hour,
  /** An operator's first answer to a collection must come within this time; later it is `unknown`. */
  collectDeadlineMs: 10 * second,
  operatorQueryDeadlineMs: 5 * second,
  /** A payment whose first answer never came back (the process died) is asked about after this time. */
  firstCheckMs: 12 * second,
  /** After its expiry a collection is asked about once an hour: late money is real. */
  lateCheckMs: 1 * hour,
  /**
   * A prompt that never left is sent again for this long; later the customer is gone. (see
   * docs/design/requests.md#decisions)
   */
  resendForMs: 1 * minute,

  /** `POST /deposit` answers after this time, whatever is known by then (see docs/design/rules.md#bounds). */
  depositWaitMs: 20 * second,
  /** An operator's first answer to a disbursement, where that answer is its outcome. */
  disburseSyncDeadlineMs: 18 * second,
  /** A payout that provably never left is tried again for so long. Choice: a day. */
  payoutUnsentForMs: 24 * hour,
  /** Recipients of a batch, and of one call (see docs/design/rules.md#bounds). */
  batchRecipientsMax: 10_000,
  /** Accounts that a batch has more than once: of these so many are listed. */
  batchDuplicatesShown: 100,
  /** Numbers that a dry run asks an operator about. */
  dryRunLookupsMax: 100,
  recipientNameLengthMax: 200,
  /** Recipients of one batch whose operators are being asked (see docs/design/rules.md#batches). */
  batchInFlightMax: 8,

  /**
   * No second call for an operation may start while the first may still arrive: deadline and late arrival.
   */
  operatorFenceMs: 30 * second,

  /** Bodies (see docs/design/rules.md#bounds). Choice: the largest `/pay` body is below 8 KiB. */
  bodyMaxBytes: 100 * 1_024,
  /** Of a call that brings recipients (see docs/design/rules.md#bounds). */
  recipientsBodyMaxBytes: 5 * 1_024 * 1_024,
  jsonDepthMax: 20,
  /** Fields of one object. */
  jsonNamesMax: 10_000,
  /** Files of recipients. Choice: two at a time, for each is held while it comes in. */
  importsPerMerchantMax: 2,
  /** What a workbook of recipients may unpack into. Choice: ten times that of the largest that is taken. */
  importUnpackedMaxBytes: 32 * 1_024 * 1_024,
  /** Its cells, and the texts that they share. Choice: 20 columns of the largest batch. */
  importCellsMax: 200_000,
  importTextsMax: 200_000,
  /**
   * A client that dribbles its request is let go. (see docs/design/architecture.md#overload-and-slow-clients)
   */
  headersTimeoutMs: 10 * second,
  requestTimeoutMs: 15 * second,
  /** Of a call that brings recipients. Choice: 5 MiB over a line of half a megabit. */
  recipientsTimeoutMs: 90 * second,
  keepAliveMs: 65 * second,
  /** A connection on which no byte moves for so long is closed. Choice: longer than any answer takes. */
  connectionIdleMs: 2 * minute,

  /** Overload (see docs/design/architecture.md#overload-and-slow-clients). */
  overloadRetryS: 1,

  /**
   * Statements shared by concurrent money requests (see
   * docs/design/architecture.md#statements-that-are-shared).
   */
  batchSizeMax: 64,

  /** Fields and fragments that a document unfolds into. */
  graphqlSelectionsMax: 5_000,
  graphqlErrorsMax: 5,
  /** Objects that one operation may give. */
  graphqlCostMax: 10_000,
  graphqlDeadlineMs: 10 * second,

  /** Live streams (see docs/design/architecture.md#limits-of-graphql). */
  subscriptionsPerTokenMax: 20,
  subscriptionsPerMerchantMax: 5_000,
  /**
   * Of these, such as differ: an event is executed once for each. Choice: a few applications, each with a
   * few documents.
   */
  subscriptionKindsPerMerchantMax: 32,
  /** A reader whose connection stays full for this long is cut off; it comes back with its cursor. */
  streamStallMs: 30 * second,
  eventPageMax: 100,
  eventPollMs: 1 * second,
  webSocketPayloadMaxBytes: 64 * 1_024,
  /** Sockets that have not shown a token, per address; with one, per token. */
  webSocketsPerAddressMax: 100,
  webSocketsPerTokenMax: 20,

  // Webhooks.
  /** Endpoints of a merchant (see docs/design/rules.md#bounds). */
  webhooksPerMerchantMax: 5,
  /**
   * One delivery to an endpoint, from its name to the last byte that is read (see
   * docs/design/events.md#deliveries).
   */
  webhookDeadlineMs: 10 * second,

  /**
   * Lanes of webhooks at once in one process; of those that fail fewer: they never fill all places. Choice:
   * a lane whose receiver hangs costs a socket for ten seconds and no session, so there are more places than
   * the endpoints of a hundred merchants fill.
   */
  endpointQueuesMax: 512,
  failingEndpointQueuesMax: 32,
  /** Deliveries that a lane takes at once; so many may be sent and not yet noted. */
  webhookTakeMax: 100,

  /** SIGTERM to exit (see docs/design/rules.md#running). */
  drainMs: 7 * second,
  /** Then the operators' answers that are still awaited; what comes later is asked for at the next start. */
  drainOperatorsMs: 1 * second,
  /** Changes of the numbers of transactions that are added to their counts at once. */
  countsCompactMax: 20_000,
} as const
