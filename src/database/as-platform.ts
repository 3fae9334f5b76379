import type pg from 'pg'

/**
 * Returns the pool that sees the rows of every merchant. Request handlers get this pool only here
 * (`test/style.check.ts`). A merchant's own data is read through `merchantPool` or Prisma.
 * @param _reason for the reader of the code: why the call needs more than the rows of one merchant
 */
export function asPlatform(
  { database: { pool } }: { database: { readonly pool: pg.Pool } },
  _reason: string,
): { readonly pool: pg.Pool } {
  return { pool }
}
