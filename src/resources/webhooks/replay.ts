import { z } from 'zod'
import { mine } from '../../identity/actor.ts'
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

/** Events that one call sends again. Choice: more than a busy day of one merchant has. */
const webhookReplayMax = 10_000

const most = webhookReplayMax
const sequence = z.bigint().min(1n, 'must be at least 1').nullish()

/** Which events are sent again: a stretch of the log, or some by their ids. */
const replayInput = z
  .object({
    from: sequence,
    to: sequence,
    ids: z
      .array(z.string())
      .min(1, 'must name at least one event')
      .max(most, `must name at most ${most}`)
      .nullish(),
  })
  .check(({ value: { from, to, ids }, issues, value }) => {
    const add = (field: string, message: string) =>
      issues.push({ code: 'custom', path: [field], message, input: value })
    if ((from == null) !== (to == null))
      add(from == null ? 'from' : 'to', 'is required: both ends of the stretch')
    else if ((from == null) === (ids == null)) add('from', 'and to, or ids must be given: one of the two')
    else if (from != null && to != null && to < from) add('to', 'must not lie before from')
    else if (from != null && to != null && to - from >= BigInt(most))
      add('to', `must lie less than ${most} after from`)
  })
type ReplayInput = z.input<typeof replayInput>

/**
 * Sends events to an endpoint again, or for the first time where they are older than it: in the order of the
 * log, under the ids that they had. Of a type that it does not name none is sent.
 * @param raw.from and raw.to: places in the log, both included; at most 10,000 events
 * @param raw.ids of events, `evt_12`
 * @returns how many are sent, or wait to be
 * @throws DomainError INVALID_INPUT, also where an id is none of the merchant's events; NOT_FOUND
 */
export async function replayEvents(
  ctx: Context,
  webhookId: number,
  raw: ReplayInput,
): Promise<{ id: number; count: number }> {
  const { from, to, ids } = readInput(replayInput, raw)
  const { id, merchantId } = await findWebhook(ctx, webhookId)
  const positions = ids ? await positionsOf(ctx, ids) : null
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
        // What was asked for is on record from its first part on.
        if (parts === 0) await recordChange(tx, recordingOf(ctx, 'replayEvents'), change)
        const part = { firstPosition: first, lastPosition: last, pagePositions }
        return makePending(tx, { merchant: merchantId, endpoint: id, ...part })
      },
    )
    parts += 1
  }
  return { id, count }
}

/** What one call asks for: a stretch of the log, or places in it. */
type PositionPage = [first: bigint | null, last: bigint | null, pagePositions: readonly bigint[] | null]

/** Choice: a call holds the endpoint for some 40 ms, and numbering everybody's events may wait for it. */
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

/** Events never go and never change: what was found stays true. @throws DomainError INVALID_INPUT */
async function positionsOf(ctx: Context, ids: readonly string[]): Promise<bigint[]> {
  const read = ids.map((id) => BigInt(/^evt_(\d{1,18})$/.exec(id)?.[1] ?? -1))
  const rows = await ctx.database.prisma.event.findMany({
    where: { ...mine(ctx), id: { in: read }, position: { not: null } },
    select: { id: true, position: true },
    orderBy: { position: 'asc' },
  })
  const positions = new Map(rows.map(({ id, position }) => [id, position]))
  const unknown: FieldProblem[] = read.flatMap((id, place) =>
    positions.has(id) ? [] : [{ field: `ids[${place}]`, message: 'is not the id of one of your events' }],
  )
  if (unknown.length > 0) throw invalidInput(unknown.slice(0, problemsMax))
  return rows.flatMap(({ position }) => position ?? [])
}

const problemsMax = 100
