import { compositeType, type TypedSql } from '../../database/sql-function.ts'
import type { Xof } from '../../shared/money.ts'
import { beyond, type KeyLimitSet } from './key-limits.ts'

/**
 * The caller's daily limit. `maxPerDay` is the lower one of the key's limit and the token's. The database
 * counts a payment against the key's limit, and also against the token's limit if that is lower or the key
 * has none.
 */
export interface DailyLimit {
  apiKeyId: number
  tokenId: string
  maxPerDay: Xof
}

/**
 * The type of a daily limit as an argument of an SQL function; null where the caller has no limit per day.
 */
export const dailyLimitType: TypedSql<DailyLimit | null> = compositeType<DailyLimit>('daily_limit', {
  apiKeyId: 'int',
  tokenId: 'uuid',
  maxPerDay: 'bigint',
})

/** Returns the daily limit of a caller; null where it has none. */
export function dailyLimitOf(actor: {
  keyLimits: KeyLimitSet | null
  tokenId: string
  apiKeyId: number
}): DailyLimit | null {
  const { keyLimits, tokenId, apiKeyId } = actor
  return keyLimits?.maxPerDay == null ? null : { apiKeyId, tokenId, maxPerDay: keyLimits.maxPerDay }
}

/**
 * Waits for the statement of a payment, and turns its error about the daily limit into a refusal.
 * @throws DomainError LIMIT_EXCEEDED, and every error of the statement
 */
export async function withinDailyLimit<T>(statement: Promise<T>): Promise<T> {
  try {
    return await statement
  } catch (error) {
    // The error of `take_daily_limit` says how much is left.
    const { constraint, detail } = error as { constraint?: unknown; detail?: unknown }
    if (constraint !== 'daily_limit') throw error
    throw beyond('maxPerDay', `has ${String(detail)} XOF left of its daily limit (the day is UTC)`)
  }
}
