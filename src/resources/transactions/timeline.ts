import { actorOf, mine } from '../../identity/callers/actor.ts'
import { type Context, loader } from '../../context.ts'
import { sqlFunction, sqlType } from '../../database/sql-function.ts'
import type { EventType } from '../../events/catalogue.ts'
import { limits } from '../../shared/limits.ts'
import type { TransactionStatus } from './states.ts'

/** The kinds of entry in a timeline: the words of `timeline_of.sql`. */
export const timelineKinds = {
  approval_requested: 'The payment waits until members approve it.',
  approved: 'A member approved the payment.',
  difference_decided:
    'The people who run the service decided on a difference between the requested and the paid amount.',
  operator_answered: 'The operator answered the request to make the payment.',
  operator_asked: 'The service sent the operator the request to make the payment.',
  operator_called_back: 'The operator reported something about the payment; the service then asks about it.',
  operator_did_not_answer:
    'The service got no complete answer to its request to make the payment; it asks about the outcome.',
  operator_questioned:
    'The service asked the operator about the outcome. Of several requests, each is an entry.',
  refund_failed: 'A refund was refused, cancelled or given back: its money is with the merchant again.',
  refund_requested: 'A refund of the payment was requested.',
  refunded: 'A refund was paid to the customer.',
  requested: 'The payment was requested.',
  status_changed: 'The status of the payment changed.',
  webhook_sent:
    'The service sent an event about the payment to a webhook endpoint. Each attempt is an entry.',
} as const
export type TimelineKind = keyof typeof timelineKinds

/** The parties that may have caused an entry. */
export const timelineSources = {
  merchant: 'The merchant: a program or a member of its team.',
  operator: 'The operator that handles the payment.',
  payer: 'The customer, on the page of a payment link.',
  platform: 'The people who run the service.',
  service: 'The service itself, by its own rules.',
} as const
export type TimelineSource = keyof typeof timelineSources

const timelineOf = sqlFunction('timeline_of', {
  takes: { merchant: 'int', ids: 'bigint[]', withWebhooks: 'boolean', take: 'int' },
  gives: {
    transactionId: 'bigint',
    at: 'timestamptz',
    kind: sqlType<TimelineKind>('text'),
    source: sqlType<TimelineSource>('text'),
    status: sqlType<TransactionStatus | null>('transaction_status?'),
    failureReason: 'text?',
    statusCode: 'int?',
    /** The duration of a call, in milliseconds. */
    durationMs: 'int?',
    eventType: sqlType<EventType | null>('text?'),
    refundId: 'bigint?',
  },
})
export type TimelineEntry = Awaited<ReturnType<typeof timelineOf>>[number]

/**
 * Reads the timeline of a transaction, oldest entry first. One statement reads the timelines of a whole query
 * level.
 *
 * Choice: attempts of webhooks are entries only for a caller with the scope `webhooks`, which shows them
 * everywhere else.
 */
export function readTimeline(ctx: Context, id: bigint): Promise<TimelineEntry[]> {
  return loader<bigint, TimelineEntry[]>(ctx, 'timeline', async (ids) => {
    const rows = await timelineOf(ctx.database.merchantPool, {
      merchant: mine(ctx).merchantId,
      ids,
      withWebhooks: actorOf(ctx).scopes.has('webhooks'),
      take: limits.timelineEntriesMax,
    })
    const byId = Map.groupBy(rows, ({ transactionId }) => transactionId)
    return ids.map((each) => byId.get(each) ?? [])
  }).load(id)
}
