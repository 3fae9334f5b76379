import { recordingType } from '../../audit/audit-log.ts'
import type { Context } from '../../context.ts'
import { type Many, shareStatement } from '../../database/shared-statements.ts'
import { actorOf } from '../../identity/callers/actor.ts'
import {
  type DailyLimit,
  dailyLimitOf,
  dailyLimitType,
  withinDailyLimit,
} from '../../identity/keys/daily-limit.ts'

/** The arguments that each payment passes to the statement that records it, with its audit entry. */
export const paymentTypes = {
  merchantId: 'int',
  apiKeyId: 'int',
  apiKeyVersion: 'int',
  provider: 'provider',
  phone: 'text',
  amount: 'bigint',
  reference: 'text',
  request: 'jsonb',
  identity: 'uuid?',
  clientAddress: 'text?',
  recording: recordingType,
} as const

/** The arguments of a payment out: those of a payment, and the daily limit that it uses. */
export const paymentOutTypes = { ...paymentTypes, dailyLimit: dailyLimitType } as const

/**
 * Makes the function that records payments out. Payments that arrive together share one statement. Payments
 * of callers with a daily limit share a second statement, because it fails as a whole when one caller exceeds
 * the limit.
 * @throws DomainError LIMIT_EXCEEDED, from the function that is made
 */
export function recordsPaymentsOut<Item extends { merchantId: number }, Made>(
  record: Many<Item & { dailyLimit: DailyLimit | null }, Made>,
): (ctx: Context, item: Item) => Promise<Made> {
  const ownerOf = ({ merchantId }: Item) => merchantId
  const unlimited = shareStatement(record, ownerOf)
  const limited = shareStatement(record, ownerOf)
  return (ctx, item) => {
    const dailyLimit = dailyLimitOf(actorOf(ctx))
    return withinDailyLimit(
      ctx.sharedStatements.run(dailyLimit ? limited : unlimited, { ...item, dailyLimit }),
    )
  }
}
