import pg from 'pg'
import { vi } from 'vitest'

/** Statements of Prisma, flat ones (`flat-read.ts`), and those by hand: counts, positions, entries, sums. */
const counted = new RegExp(
  [
    '"public"\\.',
    '^SELECT (t\\.|count|coalesce)[^;]* FROM ([a-z_]+ (AS )?t( |$)|ids_by_words)',
    'FROM (transaction_count|ledger_entry|approval_verdict|operator_request WHERE recipient)',
    'FROM settlement_exception',
    'FROM team_member t\\s+WHERE t.id = ANY',
    '(pages|sums)_of_recipients\\(',
    'statement_(of|lines)\\(',
    'timeline_of\\(',
    'AS origin, reference',
    'GROUP BY refund_of_id',
    'transaction_(of_kinds_)?at\\(',
    'event_log_position',
    '(payment|link|batch)_(stats|times)\\(',
  ].join('|'),
)

/**
 * Runs `work`, and counts what the reads of its requests cost the database.
 * @returns the answer, and the statements that it took
 */
export async function countingStatements<T>(work: () => Promise<T>): Promise<{ answer: T; seen: string[] }> {
  // Prisma quotes the schema; statements by hand read the counts for a number or a position. Jobs do neither.
  const seen: string[] = []
  const { query: original } = pg.Client.prototype as { query: (...given: unknown[]) => unknown }
  const spy = vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (
    this: pg.Client,
    ...given: unknown[]
  ) {
    const [first] = given
    const text = typeof first === 'string' ? first : (first as { text?: string }).text
    if (counted.test(text ?? '')) seen.push(text ?? '')
    return Reflect.apply(original, this, given)
  })
  try {
    return { answer: await work(), seen }
  } finally {
    spy.mockRestore()
  }
}
