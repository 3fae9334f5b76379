const second = 1_000
const minute = 60 * second
const hour = 60 * minute

/**
 * The bounds that more than one file uses. A bound that one file uses stands in that file; a bound that a
 * test shortens is a field of an object there (`sendBounds`).
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

  /** Largest payout. Choice: the million bounds `/pay` and `/deposit`; a payout may go to a supplier. */
  payoutAmountMaxXof: 100_000_000,
  /** A payment or change not approved within this time is cancelled (see docs/design/rules.md#bounds). */
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
  /** A session of a person ends after this time without a request (see docs/design/rules.md#people). */
  sessionIdleMs: 1 * hour,
  /** Sessions of one member at once; a further sign-in ends the oldest session. */
  sessionsPerMemberMax: 20,
  /** API keys that a merchant has at once. Choice. */
  apiKeysMax: 500,
  /** Keys (merchants, tokens, addresses) of one rate limit that one process keeps in memory. */
  windowNamesMax: 20_000,
  /** The share of a merchant's limit that one token may use, so that the other tokens still work. Choice. */
  tokenShare: 0.8,

  // People who sign in (see docs/design/rules.md#people).
  passwordLengthMin: 12,
  passwordLengthMax: 128,
  /** The number of failed sign-ins at which the merchant is notified. */
  signInAlertFailures: 10,
  /** Failures of one address that cause no wait: many people may share an address. Choice: ten. */
  signInAddressFailuresFree: 10,
  /**
   * Failures at one account in a window, over all addresses. The bound applies at addresses from which the
   * member never signed in: 2,400 guesses a day over any number of addresses. Choice.
   */
  signInAccountFailuresMax: 100,
  signInAccountWindowMs: 1 * hour,
  /** Wrong codes of the second factor after the right password, in a window of the same length. Choice. */
  secondFactorFailuresMax: 10,
  /** Requests for a new password. Choice: so few that strangers cannot fill a mailbox with e-mails. */
  resetsPerAccountMax: 3,
  resetsPerAddressMax: 20,
  resetsWindowMs: 1 * hour,

  /** Time after which an unconfirmed collection expires (see docs/design/rules.md#bounds). */
  collectionLifetimeMs: 24 * hour,
  /** An operator's first answer to a collection must come within this time; later it is `unknown`. */
  collectDeadlineMs: 10 * second,
  operatorQueryDeadlineMs: 5 * second,
  /** A payment without a first answer (the process died) is queried after this time. */
  firstCheckMs: 12 * second,
  /** After its expiry a collection is queried once an hour, because its money may still arrive. */
  lateCheckMs: 1 * hour,
  /**
   * A prompt that was not sent is sent again for this time; later the customer is gone. (see
   * docs/design/requests.md#decisions)
   */
  resendForMs: 1 * minute,

  /** `POST /deposit` answers after this time, also without an outcome (see docs/design/rules.md#bounds). */
  depositWaitMs: 20 * second,
  /** Time for an operator's first answer to a disbursement, if that answer is the outcome. */
  disburseSyncDeadlineMs: 18 * second,
  /** Time in which an unsent payout is sent again. Choice: a day. */
  payoutUnsentForMs: 24 * hour,
  /** Recipients of a batch, and of one call (see docs/design/rules.md#bounds). */
  batchRecipientsMax: 10_000,
  /** The most accounts that are listed as being in a batch more than once. */
  batchDuplicatesShown: 100,
  /** The most phone numbers about which one dry run asks an operator. */
  dryRunLookupsMax: 100,
  recipientNameLengthMax: 200,
  /** Recipients of one batch that are being paid at once (see docs/design/rules.md#batches). */
  batchInFlightMax: 8,

  /**
   * No second call for an operation starts within this time, in which the first may still arrive: the
   * deadline of the call, and a late arrival.
   */
  operatorFenceMs: 30 * second,

  /** Bodies (see docs/design/rules.md#bounds). Choice: the largest `/pay` body is below 8 KiB. */
  bodyMaxBytes: 100 * 1_024,
  /** Body of a call with recipients (see docs/design/rules.md#bounds). */
  recipientsBodyMaxBytes: 5 * 1_024 * 1_024,
  jsonDepthMax: 20,
  /** Fields of one object. */
  jsonNamesMax: 10_000,
  /** Files of recipients at once. Choice: two, because each stays in memory while it arrives. */
  importsPerMerchantMax: 2,
  /**
   * Unpacked size of a workbook of recipients. Choice: ten times the size of the largest accepted workbook.
   */
  importUnpackedMaxBytes: 32 * 1_024 * 1_024,
  /** Cells of a workbook, and the texts that the cells share. Choice: 20 columns of the largest batch. */
  importCellsMax: 200_000,
  importTextsMax: 200_000,
  /**
   * A client that sends its request too slowly is disconnected. (see
   * docs/design/architecture.md#overload-and-slow-clients)
   */
  headersTimeoutMs: 10 * second,
  requestTimeoutMs: 15 * second,
  /** Time for a call with recipients to arrive. Choice: 5 MiB over a line of half a megabit. */
  recipientsTimeoutMs: 90 * second,
  keepAliveMs: 65 * second,
  /** A connection without traffic for this time is closed. Choice: longer than any answer takes. */
  connectionIdleMs: 2 * minute,

  /** Overload (see docs/design/architecture.md#overload-and-slow-clients). */
  overloadRetryS: 1,

  /**
   * Statements shared by concurrent money requests (see
   * docs/design/architecture.md#statements-that-are-shared).
   */
  batchSizeMax: 64,

  /** Fields and fragments of a GraphQL document after its fragments are expanded. */
  graphqlSelectionsMax: 5_000,
  graphqlErrorsMax: 5,
  /** Objects that one operation may give. */
  graphqlCostMax: 10_000,
  graphqlDeadlineMs: 10 * second,

  /** Live streams (see docs/design/architecture.md#limits-of-graphql). */
  subscriptionsPerTokenMax: 20,
  subscriptionsPerMerchantMax: 5_000,
  /**
   * Kinds of subscriptions that a merchant has open at once: the service executes each kind once per event.
   * Choice: a few applications, each with a few documents.
   */
  subscriptionKindsPerMerchantMax: 32,
  /** A reader that does not read for this time is disconnected; it can go on from its cursor. */
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
   * One delivery to an endpoint, from resolving the host name to the last byte that is read (see
   * docs/design/events.md#deliveries).
   */
  webhookDeadlineMs: 10 * second,

  /**
   * Queues of webhook endpoints that one process serves at once; fewer of the failing ones, so that these
   * never take all slots. Choice: a receiver that hangs costs a socket for ten seconds and no database
   * session, so there are more slots than the endpoints of a hundred merchants fill.
   */
  endpointQueuesMax: 512,
  failingEndpointQueuesMax: 32,
  /** Deliveries that a queue takes at once; up to this number may be sent and not yet recorded. */
  webhookTakeMax: 100,

  /** SIGTERM to exit (see docs/design/rules.md#running). */
  drainMs: 7 * second,
  /** Time for the remaining answers of operators; later answers are queried after the next start. */
  drainOperatorsMs: 1 * second,
  /** Changes of transaction counts that one step adds to the totals. */
  countsCompactMax: 20_000,
} as const
