import { sqlFunction } from '../database/sql-function.ts'

/** Credits a sandbox merchant, once per origin. Returns false where this origin was credited before. */
export const fund = sqlFunction('fund_merchant', {
  takes: { merchant: 'int', origin: 'text', amount: 'bigint' },
  gives: 'boolean',
})
