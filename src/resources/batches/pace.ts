import type { BatchEventData } from '../../events/catalogue.ts'

interface Pace {
  /** Recipients that have not ended. */
  open: number
  /** The share of recipients that have ended, in percent: 0 to 100. */
  percentage: number
  /** Recipients paid or failed per second; null before the first one, or where the moment is not known. */
  rate: number | null
  estimatedEnd: Date | null
}

/**
 * Computes the progress of a batch at the moment of an event.
 * @param at the moment of the event; left out, the rate and the end are null
 */
export function paceOf(data: BatchEventData, at?: Date): Pace {
  const sent = data.succeeded_count + data.failed_count
  const open = data.recipient_count - sent - data.cancelled_count
  const percentage =
    data.recipient_count === 0 ? 0 : (100 * (data.recipient_count - open)) / data.recipient_count
  const tookMs = at && data.started_at !== undefined ? at.getTime() - Date.parse(data.started_at) : 0
  const rate = sent > 0 && tookMs > 0 ? (1_000 * sent) / tookMs : null
  const isUnderWay = data.status === 'processing' && at !== undefined
  const estimatedEnd = isUnderWay && rate !== null ? new Date(at.getTime() + (1_000 * open) / rate) : null
  return { open, percentage, rate, estimatedEnd }
}
