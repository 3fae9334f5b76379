import { mine } from '../../identity/callers/actor.ts'
import type { Context } from '../../context.ts'
import { smallIdMax } from '../../shared/ids.ts'
import type { PageBounds } from '../../shared/page.ts'
import { type ApprovalSubjectKind, subjects, subjectsSeenBy } from './subjects.ts'

/** A position in the list of waiting items. */
export interface ApprovalCursor {
  expiresAt: Date
  subject: ApprovalSubjectKind
  id: bigint
}

interface Row {
  id: bigint | number
  approvalExpiresAt: Date | null
}

/**
 * Reads a page of the items that wait for an approval, of the kinds that the caller may see. Items that
 * expire first come first. Each kind takes one statement.
 * @param selected the columns to read of each kind, with `id` and `approvalExpiresAt`
 * @returns at most `take` items, each with its kind and its cursor
 */
export async function readWaiting(
  ctx: Context,
  selected: Readonly<Record<ApprovalSubjectKind, object>>,
  { after: position, take }: PageBounds<ApprovalCursor>,
) {
  const { prisma } = ctx.database
  const page = { orderBy: [{ approvalExpiresAt: 'asc' as const }, { id: 'asc' as const }], take }
  const readers = {
    payout: () =>
      prisma.payout.findMany({ ...selected.payout, ...page, where: payoutsWaiting(ctx, position) }),
    batch: () => prisma.batch.findMany({ ...selected.batch, ...page, where: batchesWaiting(ctx, position) }),
    settings: () =>
      prisma.settingsChange.findMany({ ...selected.settings, ...page, where: changesWaiting(ctx, position) }),
    deposit: () =>
      prisma.depositApproval.findMany({
        ...selected.deposit,
        ...page,
        where: depositsWaiting(ctx, position),
      }),
  }
  const kinds = await Promise.all(
    subjectsSeenBy(ctx).map(async (subject) =>
      (await readers[subject]()).map((node) => ({
        node: Object.assign(node, { subject }),
        cursor: cursorOf(subject, node),
      })),
    ),
  )
  // Each kind is already in order. The sort is stable: among items that expire at the same moment, the order
  // of the kinds decides.
  return kinds
    .flat()
    .toSorted((one, other) => timeOf(one.node) - timeOf(other.node))
    .slice(0, take)
}

/** Counts the waiting items of the kinds that the caller may see. */
export async function countWaiting(ctx: Context): Promise<number> {
  const { prisma } = ctx.database
  const counters = {
    payout: () => prisma.payout.count({ where: payoutsWaiting(ctx, null) }),
    batch: () => prisma.batch.count({ where: batchesWaiting(ctx, null) }),
    settings: () => prisma.settingsChange.count({ where: changesWaiting(ctx, null) }),
    deposit: () => prisma.depositApproval.count({ where: depositsWaiting(ctx, null) }),
  }
  const counts = await Promise.all(subjectsSeenBy(ctx).map((subject) => counters[subject]()))
  return counts.reduce((sum, count) => sum + count, 0)
}

function payoutsWaiting(ctx: Context, after: ApprovalCursor | null) {
  const id = { gt: after?.id ?? 0n }
  return { ...mine(ctx), approval: 'pending', status: 'pending', ...beyond('payout', after, { id }) } as const
}

function batchesWaiting(ctx: Context, after: ApprovalCursor | null) {
  const id = { gt: Math.min(Number(after?.id ?? 0n), Number(smallIdMax)) }
  return { ...mine(ctx), status: 'pending_approval', ...beyond('batch', after, { id }) } as const
}

function changesWaiting(ctx: Context, after: ApprovalCursor | null) {
  const id = { gt: Math.min(Number(after?.id ?? 0n), Number(smallIdMax)) }
  return { ...mine(ctx), approval: 'pending', ...beyond('settings', after, { id }) } as const
}

function depositsWaiting(ctx: Context, after: ApprovalCursor | null) {
  const id = { gt: after?.id ?? 0n }
  return { ...mine(ctx), approval: 'pending', ...beyond('deposit', after, { id }) } as const
}

/** Returns the condition for the items of one kind that come after a position. */
function beyond<Id>(subject: ApprovalSubjectKind, after: ApprovalCursor | null, beyondId: Id) {
  if (after === null) return {}
  const { expiresAt } = after
  if (after.subject === subject) {
    return {
      approvalExpiresAt: { gte: expiresAt },
      OR: [{ approvalExpiresAt: { gt: expiresAt } }, beyondId],
    }
  }
  const comesLater = subjects.indexOf(subject) > subjects.indexOf(after.subject)
  return { approvalExpiresAt: comesLater ? { gte: expiresAt } : { gt: expiresAt } }
}

function timeOf({ approvalExpiresAt }: Row): number {
  return approvalExpiresAt?.getTime() ?? 0
}

function cursorOf(subject: ApprovalSubjectKind, row: Row): string {
  return `${timeOf(row)}_${letters[subject]}${row.id}`
}

/** The letter of each kind in a cursor. */
const letters: Readonly<Record<ApprovalSubjectKind, string>> = {
  payout: '',
  batch: 'b',
  settings: 's',
  deposit: 'd',
}

/** Parses a cursor; null where its form is not valid. */
export function readCursor(cursor: string): ApprovalCursor | null {
  const [, ms, letter, id] = /^(\d{1,14})_([a-z]?)(\d{1,18})$/.exec(cursor) ?? []
  const subject = subjects.find((each) => letters[each] === letter)
  if (ms === undefined || id === undefined || subject === undefined) return null
  return { expiresAt: new Date(Number(ms)), subject, id: BigInt(id) }
}
