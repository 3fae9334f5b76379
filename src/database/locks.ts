/**
 * The number of every advisory lock of the service. A lock has this number alone, or the number and a second
 * key. The SQL functions contain the numbers too: `test/database/locks.test.ts` compares them.
 */
export const locks = {
  /** One process at a time applies migrations and functions. Prisma's command line takes the same lock. */
  migrations: 72_707_369,
  /** The first merchant of a sandbox is created once. */
  firstMerchant: 72_707_371,
  /** One process at a time proves the new rows of the books. */
  recentProof: 72_707_372,
  /**
   * With the id of a merchant: held shared by each statement that checks a credential and moves money or
   * changes something, and exclusively by a statement that ends access. So an end of access waits for running
   * statements.
   */
  access: 72_707_373,
  /** One process at a time compacts the counts of transactions. */
  transactionCounts: 72_707_374,
  /**
   * With the hash of a job engine's id: a database session of that engine holds it while the engine lives.
   */
  jobEngine: 72_707_375,
  /**
   * With the id of a webhook endpoint, or 0 for the batch queue: held by the process that drains that queue.
   */
  queueLease: 72_707_376,
  /** Held by the service whose simulator plays the operators of a data folder. */
  sandboxOperators: 72_707_377,
  /** With the hash of a telephone number: its payments by links are checked one after the other. */
  linkPayer: 72_707_378,
  /** With the id of an audited thing: its changes run one after the other. */
  auditedChange: 72_707_380,
  /** One process at a time chains the audit logs. */
  auditChain: 72_707_381,
  /** One process at a time proves a slice of the whole books. */
  proofPass: 72_707_383,
  /** One process at a time writes the e-mails with the heads of the audit logs. */
  auditEmails: 72_707_384,
} as const
