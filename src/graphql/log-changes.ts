import { z } from 'zod'
import { mine } from '../identity/callers/actor.ts'
import type { Context } from '../context.ts'
import type { LogEvent } from '../events/catalogue.ts'
import { DomainError } from '../shared/errors.ts'
import { readId } from '../shared/ids.ts'
import { invalidInput, readInput, reference } from '../shared/input.ts'
import { builder } from './builder.ts'
import { EventType } from './enums.ts'
import { changesOf, type EventFilter, isWanted, typesAbout } from '../events/filter.ts'
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

/** The descriptions of arguments of subscriptions. */
export const afterWords = 'The cursor of the last change that you have. Default: only new changes.'
export const statusWords = 'Only changes to one of these statuses. Default: all changes.'

/** The part of the log that a stream shows. */
interface LogPart {
  filter: EventFilter
  /** A further condition, which the filter cannot name. */
  also?: (event: LogEvent) => boolean
  /** The one object that the stream follows, if it follows one: see `EventLog`. */
  subject?: string
}

/**
 * Opens a stream over the log of the caller's merchant.
 * @param after the cursor that the client gave, if any; see `readCursor`
 * @param part by default the whole log
 * @throws DomainError INVALID_INPUT, as `readCursor`; the errors of `liveStream`
 */
export async function followLog(
  ctx: Context,
  after: string | null | undefined,
  { filter, also, ...named }: Partial<LogPart> = {},
): Promise<LiveStream<LogEvent>> {
  const { merchantId } = mine(ctx)
  const start = await ctx.feed.start(merchantId, readCursor(after, ctx))
  return liveStream<LogEvent>(ctx, {
    ...start,
    ...named,
    read: (from, signal) =>
      ctx.feed.subscribe({ merchantId, after: from, signal, ...(filter && { filter }) }),
    positionOf: ({ position }) => position,
    ...(filter && { wants: (event) => isWanted(filter, event) && (also?.(event) ?? true) }),
  })
}

/** The arguments of a stream of changes: all changes, those of one thing, or those to some statuses. */
interface ChangeArgs {
  after?: string | null | undefined
  id?: string | null | undefined
  reference?: string | null | undefined
  status?: readonly string[] | null | undefined
}

const narrowingInput = z.object({
  reference: reference.nullish(),
  status: z.array(z.string()).min(1, 'must name at least one status').nullish(),
})

/**
 * Opens a stream of the changes of transactions or payouts. A reference may be one that is not in use yet:
 * so a client can follow a payment that it is about to request.
 * @throws DomainError INVALID_INPUT; NOT_FOUND for an unknown id; the errors of `followLog`
 */
export async function followChanges(
  ctx: Context,
  type: 'Transaction' | 'Payout',
  { after, id, ...args }: ChangeArgs,
): Promise<LiveStream<LogEvent>> {
  const { reference: named, status } = readInput(narrowingInput, args)
  const kind = type === 'Payout' ? 'payout' : 'transaction'
  const types = typesAbout(kind)
  const data = status ? { status } : {}
  if (id == null && named == null) return followLog(ctx, after, { filter: { types, data } })
  if (id != null && named != null)
    throw invalidInput([{ field: 'id', message: 'cannot be given together with `reference`' }])
  const { findFirst } = ctx.database.prisma[kind] as unknown as FindsId
  const where = { ...mine(ctx), ...(id == null ? { reference: named } : { id: readId(type, id) }) }
  const row = await findFirst({ where, select: { id: true } })
  if (row) {
    const { data: own } = changesOf(kind, row.id)
    return followLog(ctx, after, {
      filter: { types, data: { ...own, ...data } },
      subject: `${kind}:${row.id}`,
    })
  }
  if (named == null) throw new DomainError('NOT_FOUND', `There is no such ${kind}.`)
  return followLog(ctx, after, {
    filter: { types, data: { reference: [named], ...data } },
    subject: `${kind} ${named}`,
  })
}

/** A table of Prisma whose rows have ids of 64 bits. */
interface FindsId {
  findFirst: (query: object) => Promise<{ id: bigint } | null>
}
