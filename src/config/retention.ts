import { z } from 'zod'

/** For how many days the service keeps each kind of record; 0: for ever. */
export interface Retention {
  /** Exchanges with operators. */
  exchangeDays: number
  callbackDays: number
}

/** Choice: a customer or an operator may complain within 30 days. The database enforces this bound too. */
const daysMin = 30
const daysMax = 36_500

function days(description: string) {
  return z.coerce
    .number()
    .int()
    .max(daysMax)
    .refine(
      (given) => given === 0 || given >= daysMin,
      `must be 0 (for ever), or ${daysMin} to ${daysMax} days`,
    )
    .default(0)
    .describe(`${description} ${daysMin} to ${daysMax}, or 0: for ever.`)
}

/** The settings of these times. */
export const retentionSettings = {
  EXCHANGE_RETENTION_DAYS: days(
    'Days after which a stored exchange with an operator is deleted, once its payment has ended.',
  ),
  CALLBACK_RETENTION_DAYS: days(
    'Days after which a stored callback of an operator is deleted, once its payment has ended.',
  ),
}

export function readRetention(read: z.output<z.ZodObject<typeof retentionSettings>>): Retention {
  return { exchangeDays: read.EXCHANGE_RETENTION_DAYS, callbackDays: read.CALLBACK_RETENTION_DAYS }
}
