const second = 1_000
const minute = 60 * second
const hour = 60 * minute

/**
 * Bounds of the service; other bounds stand in the only file that uses them. There, a bound that a test
 * shortens is a field of an object (`sendBounds`). If a bound has a unit, its name ends with the unit. A
 * comment names the source of a bound: a heading of `src/docs/design`, or `Choice` with its reason.
 */
export const limits = {
  /** Smallest collection (see docs/design/rules.md#bounds). */
  collectAmountMinXof: 100,
  /** Smallest disbursement: deposits, payouts, bulk pay (see docs/design/rules.md#bounds). */
  disburseAmountMinXof: 1_000,
  /** Largest collection, deposit or refund (see docs/design/rules.md#bounds). */
  amountMaxXof: 1_000_000,

  /** Largest payout. Choice: larger than a deposit, because a payout may pay a supplier. */
  payoutAmountMaxXof: 100_000_000,
  /** A payment or change not approved within this time is cancelled (see docs/design/rules.md#bounds). */
  approvalLifetimeMs: 7 * 24 * hour,

  /** Largest amount of test money in one call. Choice: a billion francs, so that sums stay exact in JSON. */
  fundAmountMaxXof: 1_000_000_000,

  /** Rows of one page of a list (see docs/design/rules.md#bounds). */
  pageSizeMax: 100,
  pageSizeDefault: 20,
  /** Rows that an export reads at once. */
  exportPageRows: 1_000,
  /** Entries in the timeline of a payment. Choice: several times those of a payment that took long. */
  timelineEntriesMax: 50,
  /** Most rows that a list can skip. Choice: more is a mistake or an attack; cursors reach every row. */
  offsetMax: 1_000_000_000,

  descriptionLengthMax: 255,
  /** Characters of names and of bank account numbers (see docs/design/rules.md#bounds). */
  beneficiaryNameLengthMax: 200,
  merchantNameLengthMax: 200,
  /** Characters of the address of a merchant. Choice: as for names. */
  merchantAddressLengthMax: 200,
  bankAccountLengthMin: 5,
  bankAccountLengthMax: 34,
  /** Characters of the last part of a payment link's address (see docs/design/rules.md#bounds). */
  linkSlugLengthMin: 3,
  linkSlugLengthMax: 64,
  /** Payment pages of one address that listen for a change at once. Choice: many people share an address. */
  linkStreamsPerAddressMax: 300,
  urlLengthMax: 2_048,

  /**
   * The attempts at `POST /auth` of one key at one address in a window, and the lifetimes of tokens (see
   * docs/design/rules.md#bounds).
   */
  authAttemptsMax: 20,
  authWindowMs: 15 * minute,
  /**
   * Wrong secrets of one API key in `keyFailuresWindowMs`, over all addresses from which the key never signed
   * in. Choice: as for the members who sign in.
   */
  keyFailuresMax: 100,
  keyFailuresWindowMs: 1 * hour,
  tokenHoursMin: 1,
  tokenHoursMax: 720,
  tokenHoursDefault: 24,
  tokenCacheMax: 5_000,
  /** A session of a person ends after this time without a request (see docs/design/rules.md#people). */
  sessionIdleMs: 1 * hour,
  /** Sessions of one member at once; a further sign-in ends the oldest session. */
  sessionsPerMemberMax: 20,
  /** API keys that a merchant can have at once. Choice. */
  apiKeysMax: 500,
  /** Keys (merchants, tokens, addresses) of one rate limit that one process keeps in memory. */
  windowNamesMax: 20_000,
  /** The share of a merchant's limit that one token may use, so that the other tokens still work. Choice. */
  tokenShare: 0.8,

  // People who sign in (see docs/design/rules.md#people).
  passwordLengthMin: 12,
  passwordLengthMax: 128,
  /** Time for which the link of an invitation works. */
  invitationHours: 72,
  /** The number of failed sign-ins at which the merchant is notified. */
  signInAlertFailures: 10,
  /** Failed sign-ins from one address, over all accounts, that cause no wait there. Choice: ten. */
  signInAddressFailuresFree: 10,
  /**
   * Failed sign-ins at one account in `signInAccountWindowMs`, over all addresses. The bound applies at
   * addresses from which the member never signed in: at most 2,400 guesses a day there. Choice.
   */
  signInAccountFailuresMax: 100,
  signInAccountWindowMs: 1 * hour,
  /** Wrong codes of the second factor after the right password, in `signInAccountWindowMs`. Choice. */
  secondFactorFailuresMax: 10,
  /** Requests for a new password in `resetsWindowMs`. Choice: too few to fill a mailbox with e-mails. */
  resetsPerAccountMax: 3,
  resetsPerAddressMax: 20,
  resetsWindowMs: 1 * hour,
  /** Times that one invitation is sent again in `resendsWindowMs`. Choice: as for new passwords. */
  resendsMax: 3,
  resendsWindowMs: 1 * hour,

  /** Time after which an unconfirmed collection expires (see docs/design/rules.md#bounds). */
  collectionLifetimeMs: 24 * hour,
  /** Time for an operator's first answer to a collection; without an answer the outcome is `unknown`. */
  collectDeadlineMs: 10 * second,
  operatorQueryDeadlineMs: 5 * second,
  /** A payment without a recorded first answer (the process may have died) is queried after this time. */
  firstCheckMs: 12 * second,
  /** After its expiry a collection is queried once an hour, because its money may still arrive. */
  lateCheckMs: 1 * hour,
  /**
   * A collection that could not be sent is tried again for this time; later the customer has gone (see
   * docs/design/requests.md#decisions).
   */
  resendForMs: 1 * minute,

  /** `POST /deposit` answers after this time, also without an outcome (see docs/design/rules.md#bounds). */
  depositWaitMs: 20 * second,
  /** Time for the answer of an operator that answers a disbursement with its outcome. */
  disburseSyncDeadlineMs: 18 * second,
  /** Time for which an unsent payout, recipient or approved deposit is tried again. Choice: a day. */
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
   * After a call that may have been sent, no second call for the operation starts within this time, because
   * the first may still arrive. This time covers the deadline of the call and a late arrival.
   */
  operatorFenceMs: 30 * second,

  /** Body of most calls (see docs/design/rules.md#bounds). Choice: the largest `/pay` body is below 8 KiB. */
  bodyMaxBytes: 100 * 1_024,
  /** Body of a call with recipients (see docs/design/rules.md#bounds). */
  recipientsBodyMaxBytes: 5 * 1_024 * 1_024,
  jsonDepthMax: 20,
  /** Fields of one object in a JSON body. */
  jsonNamesMax: 10_000,
  /** Files that a merchant can import at once. Choice: two, because each stays in memory while it arrives. */
  importsPerMerchantMax: 2,
  /**
   * A client that sends its request too slowly is disconnected (see
   * docs/design/architecture.md#overload-and-slow-clients).
   */
  headersTimeoutMs: 10 * second,
  requestTimeoutMs: 15 * second,
  /** Time for a call with recipients to arrive. Choice: 5 MiB over a line of half a megabit. */
  recipientsTimeoutMs: 90 * second,
  keepAliveMs: 65 * second,
  /** A connection without traffic for this time is closed. Choice: longer than any answer takes. */
  connectionIdleMs: 2 * minute,

  /**
   * The `Retry-After` of a refusal for lack of room (see
   * docs/design/architecture.md#overload-and-slow-clients).
   */
  overloadRetryS: 1,

  /**
   * Most concurrent money requests that share one statement (see
   * docs/design/architecture.md#statements-that-are-shared).
   */
  statementItemsMax: 64,

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
   * Kinds of subscriptions (see `subscription.ts`) that a merchant can have open at once: the service
   * executes each kind once per event. Choice: a few applications, each with a few documents.
   */
  subscriptionKindsPerMerchantMax: 32,
  /**
   * Kinds of subscriptions to one object (a payment, a payout, a batch, a link) at once: for each object, and
   * for all objects of a merchant. They do not count among the kinds above, because they are executed only
   * for the few events of their object.
   */
  subscriptionKindsPerObjectMax: 32,
  subscriptionKindsOfObjectsMax: 500,
  /** The pause between two checkpoints of a stream: see `graphql/checkpoints.ts`. */
  checkpointMs: 10 * second,
  /** A client that reads nothing of a stream or a download for this time is disconnected. */
  streamStallMs: 30 * second,
  eventPageMax: 100,
  eventPollMs: 1 * second,
  webSocketPayloadMaxBytes: 64 * 1_024,
  /** WebSockets without a token, per address; after the token has come they count per token. */
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

  /** Time for running requests and jobs to end after SIGTERM (see docs/design/rules.md#running). */
  drainMs: 7 * second,
  /** Time for the remaining answers of operators; later answers are queried after the next start. */
  drainOperatorsMs: 1 * second,
} as const
