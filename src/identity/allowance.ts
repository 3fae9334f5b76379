import { compositeType, type TypedSql } from '../database/sql-function.ts'
import type { Xof } from '../shared/money.ts'
import { beyond, type Caps } from './caps.ts'

/** Whose allowance of the day a payment uses: the key's, and the token's where that is narrower. */
export interface Allowance {
  apiKeyId: number
  tokenId: string
  maxPerDay: Xof
}

/** As an argument of an SQL function; null where the caller has no limit per day. */
export const allowanceType: TypedSql<Allowance | null> = compositeType<Allowance>('key_allowance', {
  apiKeyId: 'int',
  tokenId: 'uuid',
  maxPerDay: 'bigint',
})

/** @returns null where the caller has no limit per day */
export function allowanceOf(actor: {
  caps: Caps | null
  tokenId: string
  apiKeyId: number
}): Allowance | null {
  const { caps, tokenId, apiKeyId } = actor
  return caps?.maxPerDay == null ? null : { apiKeyId, tokenId, maxPerDay: caps.maxPerDay }
}

/**
 * Waits for the statement of a payment that uses an allowance.
 * @throws DomainError LIMIT_EXCEEDED, and whatever it throws
 */
export async function withinAllowance<T>(statement: Promise<T>): Promise<T> {
  try {
    return await statement
  } catch (error) {
    // `take_allowance` says how much is left.
    const { constraint, detail } = error as { constraint?: unknown; detail?: unknown }
    if (constraint !== 'key_allowance') throw error
    throw beyond('maxPerDay', `has ${String(detail)} XOF left of what it is limited to on this day (UTC)`)
  }
}
