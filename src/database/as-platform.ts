import type pg from 'pg'

/**
 * Returns a pool without row-level security: it sees the rows of every merchant. Request handlers get such a
 * pool only here (`test/style.test.ts`). A merchant's own data is read through `merchantPool` or Prisma.
 * @param _reason why the rows of the caller's own merchant are not enough, in a few words, for the reader of
 * the call
 */
export function asPlatform(
  { database: { pool } }: { database: { readonly pool: pg.Pool } },
  _reason: string,
): { readonly pool: pg.Pool } {
  return { pool }
}
