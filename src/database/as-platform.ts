import type pg from 'pg'

/**
 * Looks past row-level security: a pool that sees the rows of every merchant. Answers to requests get it here
 * and nowhere else (`test/style.test.ts`). What a merchant reads goes through `merchantPool` or Prisma.
 * @param _reason why the caller's own merchant is not enough, in a few words; the reader of the call needs it
 */
export function asPlatform(
  { database: { pool } }: { database: { readonly pool: pg.Pool } },
  _reason: string,
): { readonly pool: pg.Pool } {
  return { pool }
}
