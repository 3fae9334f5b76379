import { mine } from '../identity/callers/actor.ts'
import type { Context } from '../context.ts'
import type { LogEvent } from '../events/catalogue.ts'
import { builder } from './builder.ts'
import { EventType } from './enums.ts'
import { type LiveStream, liveStream, readCursor } from './live-stream.ts'

/** The interface of a change in the log: each change that a subscription reports has these fields. */
export const LogChange = builder.interfaceRef<LogEvent>('LogChange').implement({
  description: "A change in the merchant's event log.",
  fields: (t) => ({
    sequence: t.field({
      type: 'SafeInt',
      description:
        "The position of the change in the merchant's event log. The numbers can have gaps, because " +
        'other events of the merchant use the numbers between.',
      resolve: ({ position }) => position,
    }),
    cursor: t.string({
      description: 'The cursor of this change. Pass it as `after` to continue from here.',
      resolve: ({ position }) => String(position),
    }),
    type: t.expose('type', {
      type: EventType,
      description: 'The type of the event that describes the change.',
    }),
    occurredAt: t.expose('occurredAt', {
      type: 'DateTime',
      description: 'The moment when the change happened.',
    }),
  }),
})

/** The description of a subscription's argument `after`. */
export const afterWords = 'The cursor of the last change that you have. Default: only new changes.'

/**
 * Opens a stream over the log of the caller's merchant.
 * @param after the cursor that the client gave, if any; without one, `Last-Event-ID` of a client of SSE that
 *   reconnects
 * @param wants tells whether the reader wants an event; by default the reader wants all
 * @throws DomainError INVALID_INPUT, as `readCursor`; the errors of `liveStream`
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
