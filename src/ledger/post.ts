import { sqlFunction } from '../database/sql-function.ts'

/** Credits a sandbox merchant, once per cause. False where this cause funded before. */
export const fund = sqlFunction('fund_merchant', {
  takes: { merchant: 'int', origin: 'text', amount: 'bigint' },
  gives: 'boolean',
})
