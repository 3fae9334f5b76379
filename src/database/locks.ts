/**
 * Every advisory lock of the service, each number once. Locks with one key and locks with two keys never meet
 * in PostgreSQL. The SQL functions write the numbers themselves: `test/database/locks.test.ts` compares.
 */
export const locks = {
  /** One process applies migrations and functions. It is Prisma's own number. */
  migrations: 72_707_369,
  /** One process at a time numbers events. A restore holds it while it raises the positions. */
  eventNumbers: 72_707_370,
  /** The first merchant of a sandbox is made once. */
  firstMerchant: 72_707_371,
  /** One process proves what is new in the books. */
  recentProof: 72_707_372,
  /**
   * With the id of a merchant: held shared by each statement that judges a credential and moves money or
   * changes something, and alone by what ends access. So an end waits for what is under way.
   */
  access: 72_707_373,
  /** One process adds the changes up to the counts of transactions. */
  transactionCounts: 72_707_374,
  /** With the hash of its id: a session of a job engine holds it while the engine lives. */
  jobEngine: 72_707_375,
  /** With the id of a webhook: the process that calls its address holds it. */
  webhookCalls: 72_707_376,
  /** The service whose simulator plays the operators of a folder holds it. */
  sandboxOperators: 72_707_377,
  /** With the hash of a telephone number: its payments of links are judged in turn. */
  linkPayer: 72_707_378,
  /** With the id of something audited: of two changes the second begins with what the first made. */
  auditedChange: 72_707_380,
  /** One process seals the audit logs. */
  auditChain: 72_707_381,
  /** One process goes on with the pass over the whole books. */
  proofPass: 72_707_383,
  /** One process writes the letters with the heads of the audit logs. */
  auditEmails: 72_707_384,
} as const
