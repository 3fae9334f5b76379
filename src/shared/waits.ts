/**
 * How long the service waits for its database and its peers before it answers without them: the waits that a
 * machine with too much work reaches. Choices. Tests lengthen them (`test/kit/patience.ts`).
 */
export const waits = {
  /** For a connection to the database, also for a free one of the pool. */
  connectMs: 2_000,
  statementMs: 5_000,
  /** The client's limit for a statement: above `statementMs`, so only a dead server reaches it. */
  answerMs: 7_000,
  idleInTransactionMs: 5_000,
  lockMs: 2_000,
  /**
   * For the one query about credentials that all requests wait for: not for ever, because a connection may
   * have gone silent.
   */
  credentialsMs: 3_000,
  /** For the count of a request in the database; after it the process counts by itself. */
  countMs: 250,
  /**
   * For the pools of a ready process: longer than a busy moment, because a process that a load balancer
   * removes leaves its load to the others.
   */
  readyMs: 1_000,
  /** For the first byte of a refused connection, because an answer before the request confuses clients. */
  firstByteMs: 500,
  /** For the operators' answers about phone numbers in a dry run. */
  lookupsMs: 3_000,
}
