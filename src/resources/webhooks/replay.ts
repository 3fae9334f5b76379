import { z } from 'zod'
import { mine } from '../../identity/callers/actor.ts'
import { recordChange, recordingOf } from '../../audit/audit-log.ts'
import type { Context } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { transact } from '../../database/transact.ts'
import { type FieldProblem } from '../../shared/errors.ts'
import { invalidInput, readInput } from '../../shared/input.ts'
import { findWebhook } from './find.ts'
import { sqlFunction } from '../../database/sql-function.ts'

const makePending = sqlFunction('replay_events', {
  takes: {
    merchant: 'int',
    endpoint: 'int',
    firstPosition: 'bigint?',
    lastPosition: 'bigint?',
    pagePositions: 'bigint[]?',
  },
  gives: 'int',
})

/** The most events that one call sends again. Choice: more than a merchant has on a busy day. */
export const webhookReplayMax = 10_000

const most = webhookReplayMax
const sequence = z.bigint().min(1n, 'must be at least 1')
const eventIds = z
  .array(z.string())
  .min(1, 'must name at least one event')
  .max(most, `must name at most ${most}`)

/** The input of a replay: `events`, or its older form `from` with `to`, or `ids`. */
const replayInput = z
  .object({
    events: z
      .object({ range: z.object({ from: sequence, to: sequence }).nullish(), ids: eventIds.nullish() })
      .nullish(),
    from: sequence.nullish(),
    to: sequence.nullish(),
    ids: eventIds.nullish(),
  })
  .check(({ value: { events, from, to, ids }, issues, value }) => {
    const add = (path: string[], message: string | null) =>
      message !== null && issues.push({ code: 'custom', path, message, input: value })
    const forms = [events, from ?? to, ids].filter((given) => given != null)
    if (forms.length !== 1) add(['events'], 'must be given, and none of `from`, `to` and `ids` beside it')
    else if (events?.range) add(['events', 'range', 'to'], endProblem(events.range))
    else if ((from == null) !== (to == null))
      add([from == null ? 'from' : 'to'], 'is required: give both `from` and `to`')
    else if (from != null && to != null) add(['to'], endProblem({ from, to }))
  })

function endProblem({ from, to }: { from: bigint; to: bigint }): string | null {
  if (to < from) return 'must not be smaller than `from`'
  return to - from < BigInt(most) ? null : `must be at most ${most - 1} more than \`from\``
}
type ReplayInput = z.input<typeof replayInput>

/**
 * Sends events to an endpoint again, or for the first time if they are older than the endpoint: in the order
 * of the log and under their old ids. Events of types that the endpoint does not name are left out.
 * @param raw.events positions in the log, both ends included, at most 10,000 events; or ids, `evt_12`
 * @returns the number of events that the endpoint will get
 * @throws DomainError INVALID_INPUT, also where an id is none of the merchant's events; NOT_FOUND
 */
export async function replayEvents(
  ctx: Context,
  webhookId: number,
  raw: ReplayInput,
): Promise<{ id: number; count: number }> {
  const { events, ...older } = readInput(replayInput, raw)
  const { from, to } = events?.range ?? older
  const ids = events ? events.ids : older.ids
  const { id, merchantId } = await findWebhook(ctx, webhookId)
  const positions = ids ? await positionsOf(ctx, ids, events ? 'events.ids' : 'ids') : null
  const asked = ids ? { events: ids.length } : { from: Number(from), to: Number(to) }
  const change = { target: ['webhook', id], after: asked } as const
  let count = 0
  let parts = 0
  for (const [first, last, pagePositions] of positions
    ? someOf(positions)
    : stretchesOf(from ?? 1n, to ?? 0n)) {
    count += await transact(
      asPlatform(ctx, 'the SQL function receives the id of the merchant'),
      async (tx) => {
        // The first part writes the whole request into the audit log.
        if (parts === 0) await recordChange(tx, recordingOf(ctx, 'replayEvents'), change)
        const part = { firstPosition: first, lastPosition: last, pagePositions }
        return makePending(tx, { merchant: merchantId, endpoint: id, ...part })
      },
    )
    parts += 1
  }
  return { id, count }
}

/** The events of one statement: a range of positions, or a list of positions. */
type PositionPage = [first: bigint | null, last: bigint | null, pagePositions: readonly bigint[] | null]

/**
 * The positions that one statement handles. Choice: it locks the endpoint for some 40 ms, and the numbering
 * of events may wait for that lock.
 */
const positionsPerCall = 500

function* stretchesOf(from: bigint, to: bigint): Generator<PositionPage> {
  for (let first = from; first <= to; first += BigInt(positionsPerCall)) {
    const last = first + BigInt(positionsPerCall - 1)
    yield [first, last < to ? last : to, null]
  }
}

function* someOf(positions: readonly bigint[]): Generator<PositionPage> {
  for (let next = 0; next < positions.length; next += positionsPerCall)
    yield [null, null, positions.slice(next, next + positionsPerCall)]
}

/**
 * Finds the positions of events by their ids. The result stays valid: events are never deleted or changed.
 * @throws DomainError INVALID_INPUT
 */
async function positionsOf(ctx: Context, ids: readonly string[], place: string): Promise<bigint[]> {
  const read = ids.map((id) => BigInt(/^evt_(\d{1,18})$/.exec(id)?.[1] ?? -1))
  const rows = await ctx.database.prisma.event.findMany({
    where: { ...mine(ctx), id: { in: read } },
    select: { id: true, position: true },
    orderBy: { position: 'asc' },
  })
  const positions = new Map(rows.map(({ id, position }) => [id, position]))
  const unknown: FieldProblem[] = read.flatMap((id, index) =>
    positions.has(id)
      ? []
      : [{ field: `${place}[${index}]`, message: 'is not the id of one of your events' }],
  )
  if (unknown.length > 0) throw invalidInput(unknown.slice(0, problemsMax))
  return rows.map(({ position }) => position)
}

const problemsMax = 100
