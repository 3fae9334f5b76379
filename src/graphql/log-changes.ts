import { mine } from '../identity/actor.ts'
import type { Context } from '../context.ts'
import type { LogEvent } from '../events/catalogue.ts'
import { builder } from './builder.ts'
import { EventType } from './enums.ts'
import { type LiveStream, liveStream, readCursor } from './live-stream.ts'

/** Where a change stands in the log: what the subscriptions tell of has these fields. */
export const LogChange = builder.interfaceRef<LogEvent>('LogChange').implement({
  description: 'A change that the log of the merchant tells of, as it was at that moment.',
  fields: (t) => ({
    sequence: t.field({
      type: 'SafeInt',
      description:
        'Place in the one log of the merchant, which has no gap. What lies between two changes is of ' +
        'other kinds: see `events`.',
      resolve: ({ position }) => position,
    }),
    cursor: t.string({
      description: 'Give it as `after` to go on from here.',
      resolve: ({ position }) => String(position),
    }),
    type: t.expose('type', { type: EventType }),
    occurredAt: t.expose('occurredAt', { type: 'DateTime' }),
  }),
})

/** What `after` of a subscription to changes means. */
export const afterWords = 'Cursor of the last change that you have; without it, what comes next.'

/**
 * Follows the log of the caller's merchant.
 * @param after the cursor that was given, if any; without it the one that a client of SSE comes back with
 * @param wants left out, all of it
 * @throws DomainError INVALID_INPUT, as `readCursor`; those of `liveStream`
 */
export async function followLog(
  ctx: Context,
  after: string | null | undefined,
  wants?: (event: LogEvent) => boolean,
): Promise<LiveStream<LogEvent>> {
  const { merchantId } = mine(ctx)
  const start = await ctx.feed.start(merchantId, readCursor(after ?? ctx.lastEventId))
  return liveStream<LogEvent>(ctx, {
    ...start,
    read: (from, signal) => ctx.feed.subscribe({ merchantId, after: from, signal }),
    positionOf: ({ position }) => position,
    ...(wants && { wants }),
  })
}
