import { recordingType } from '../audit/audit-log.ts'
import type { Context } from '../context.ts'
import { type Many, shareStatement } from '../database/batch.ts'
import { actorOf } from '../identity/actor.ts'
import { type DailyLimit, dailyLimitOf, dailyLimitType, withinDailyLimit } from '../identity/daily-limit.ts'

/** What each payment tells the statement that records it: who asks, what for, and the audit entry. */
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

/** What each payment out tells it: also whose limit of the day it uses. */
export const paymentOutTypes = { ...paymentTypes, dailyLimit: dailyLimitType } as const

/**
 * Makes the verb that records payments out: those that arrive together share one statement, those of callers
 * with a limit of the day another one, because it fails as a whole where one caller is beyond its limit.
 * @throws DomainError LIMIT_EXCEEDED, by the verb
 */
export function recordsPaymentsOut<Item extends { merchantId: number }, Made>(
  record: Many<Item & { dailyLimit: DailyLimit | null }, Made>,
): (ctx: Context, item: Item) => Promise<Made> {
  const ownerOf = ({ merchantId }: Item) => merchantId
  const unlimited = shareStatement(record, ownerOf)
  const limited = shareStatement(record, ownerOf)
  return (ctx, item) => {
    const dailyLimit = dailyLimitOf(actorOf(ctx))
    return withinDailyLimit(ctx.batches.run(dailyLimit ? limited : unlimited, { ...item, dailyLimit }))
  }
}
