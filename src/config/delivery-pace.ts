import { z } from 'zod'

/** The schedule of deliveries to merchants' servers (see docs/design/events.md#deliveries). */
export interface DeliveryPace {
  /**
   * Seconds from each failed attempt to the next. After the last attempt the service stops trying; the event
   * is kept for replay.
   */
  retryScheduleS: readonly number[]
  /** The number of failed attempts in a row that disables an endpoint. */
  disableAfter: number
}

const usualSchedule = '10,60,300,900,3600,7200,14400,28800,43200,72000,86400'
const waitMaxS = 30 * 86_400
const stepsMax = 100

export const deliverySettings = {
  WEBHOOK_RETRY_SCHEDULE: z
    .string()
    .default(usualSchedule)
    .transform((text) => text.split(',').map((part) => (part.trim() === '' ? Number.NaN : Number(part))))
    .refine(
      (waits) =>
        waits.length <= stepsMax &&
        waits.every((wait) => Number.isInteger(wait) && wait > 0 && wait <= waitMaxS),
      `must be a list of up to ${stepsMax} whole seconds with commas, each 1 to ${waitMaxS}`,
    )
    .describe(
      'Seconds from each failed attempt at a webhook delivery to the next. After the last attempt the ' +
        'service stops sending the delivery; replayEvents can send the event again.',
    ),
  WEBHOOK_DISABLE_AFTER: z.coerce
    .number()
    .int()
    .min(1)
    .max(1_000)
    .default(20)
    .describe('The number of failed attempts in a row after which a webhook endpoint is disabled.'),
}

export function readDeliveryPace(read: z.output<z.ZodObject<typeof deliverySettings>>): DeliveryPace {
  return { retryScheduleS: read.WEBHOOK_RETRY_SCHEDULE, disableAfter: read.WEBHOOK_DISABLE_AFTER }
}
