import {
  getRefFromModel,
  type PrismaModelTypes,
  type PrismaObjectRef,
  queryFromInfo,
} from '@pothos/plugin-prisma'
import { mine } from '../../access/actor.ts'
import { type ApprovalEventData, isApprovalEvent, type LogEvent } from '../../events/catalogue.ts'
import type { Context } from '../../context.ts'
import { builder } from '../../graphql/builder.ts'
import { MemberRole, stateEnum } from '../../graphql/enums.ts'
import { refusals } from '../../graphql/errors.ts'
import { afterWords, followLog, LogChange } from '../../graphql/log-changes.ts'
import { checkPage } from '../../graphql/pagination.ts'
import { limits } from '../../shared/limits.ts'
import { type Asked, mayApprove, type Verdict, verdictsOf } from './asked.ts'
import { approve, reject } from './decide.ts'
import { type ApprovalStatus, approvalStates } from './states.ts'
import { seesApprovals, subjectsSeenBy } from './subjects.ts'
import { countWaiting, readWaiting } from './waiting.ts'

const Status = stateEnum('ApprovalStatus', approvalStates, 'Whether people let something go.')

const Approver = builder.objectRef<Verdict>('Approver').implement({
  description: 'A member of the team, as one who decides.',
  fields: (t) => ({
    databaseId: t.exposeInt('memberId', { description: 'Its id in REST.' }),
    name: t.exposeString('name'),
  }),
})

const VerdictType = builder.objectRef<Verdict>('ApprovalVerdict').implement({
  description: 'What somebody decided about something that waits for approval.',
  fields: (t) => ({
    member: t.field({ type: Approver, resolve: (verdict) => verdict }),
    role: t.expose('role', { type: MemberRole, description: 'As it was then.' }),
    at: t.expose('at', { type: 'DateTime' }),
    counts: t.exposeBoolean('counts', {
      description: 'False of somebody who was removed since, or whose role no longer approves.',
    }),
  }),
})

const Approval = builder.objectRef<Asked>('Approval').implement({
  description: 'Whether people let something go, where its merchant asks for that.',
  fields: (t) => ({
    status: t.field({ type: Status, resolve: ({ approval }) => approval }),
    required: t.exposeInt('approvalsRequired', {
      description: 'How many people must approve it, as the settings were when it was to go; 0 for none.',
    }),
    approvedBy: t.field({
      type: [VerdictType],
      description: 'Who approved it, in order.',
      resolve: async (asked, _args, ctx) =>
        (await verdictsOf(ctx, asked)).filter(({ verdict }) => verdict === 'approved'),
    }),
    rejectedBy: t.field({
      type: VerdictType,
      nullable: true,
      resolve: async (asked, _args, ctx) => rejection(await verdictsOf(ctx, asked)) ?? null,
    }),
    reason: t.string({
      nullable: true,
      description: 'Why it was rejected.',
      resolve: async (asked, _args, ctx) => rejection(await verdictsOf(ctx, asked))?.reason ?? null,
    }),
    digest: t.string({
      nullable: true,
      description: 'SHA-256 of who is paid what, how and when: who approves gives back what was seen.',
      resolve: ({ approvalDigest }) => approvalDigest && Buffer.from(approvalDigest).toString('hex'),
    }),
    expiresAt: t.expose('approvalExpiresAt', {
      type: 'DateTime',
      nullable: true,
      description: 'It is cancelled where it was not approved by then.',
    }),
    canApprove: t.boolean({
      perPerson: true,
      description: 'Whether the caller may approve it now: somebody who signed in, and did not ask for it.',
      resolve: (asked, _args, ctx) => mayApprove(ctx, asked),
    }),
  }),
})

function rejection(verdicts: readonly Verdict[]): Verdict | undefined {
  return verdicts.find(({ verdict }) => verdict === 'rejected')
}

const asking = {
  id: true,
  status: true,
  approval: true,
  approvalDigest: true,
  approvalExpiresAt: true,
  approvalsRequired: true,
} as const

builder.prismaObjectField('Payout', 'approval', (t) =>
  t.field({
    type: Approval,
    select: { ...asking, makerMemberId: true },
    resolve: ({ status, makerMemberId, ...payout }): Asked => ({
      ...payout,
      subject: 'payout',
      waits: status === 'pending' && payout.approval === 'pending',
      makers: makerMemberId === null ? [] : [makerMemberId],
    }),
  }),
)

builder.prismaObjectField('Batch', 'approval', (t) =>
  t.field({
    type: Approval,
    select: { ...asking, makerMemberIds: true },
    resolve: ({ id, status, makerMemberIds, ...batch }): Asked => ({
      ...batch,
      subject: 'batch',
      id: BigInt(id),
      waits: status === 'pending_approval',
      makers: makerMemberIds,
    }),
  }),
)

type Model = PrismaObjectRef<typeof builder.$inferSchemaTypes, PrismaModelTypes, object>

/** The type of a model, which another resource states. */
function typeOf(model: 'Payout' | 'Batch'): Model {
  return getRefFromModel(model, builder) as Model
}

const Subject = builder.unionType('ApprovalSubject', {
  description: 'What may wait for approval.',
  types: [typeOf('Payout'), typeOf('Batch')],
  resolveType: (row) => ('recipientCount' in row ? 'Batch' : 'Payout'),
})

const Waiting = builder.connectionObject(
  {
    type: Subject,
    name: 'ApprovalsWaitingConnection',
    description: 'A page of what waits for approval.',
    fields: (t) => ({ totalCount: t.int({ resolve: (_page, _args, ctx) => countWaiting(ctx) }) }),
  },
  { name: 'ApprovalsWaitingEdge' },
)

builder.queryField('approvalsWaiting', (t) =>
  t.field({
    type: Waiting,
    nullable: true,
    scope: seesApprovals,
    description:
      'What waits for approval, of the kinds that the token may see, what expires first before the rest; ' +
      '`canApprove` marks yours.',
    args: {
      first: t.arg.int({ description: '1 to 100; 20 where left out.' }),
      after: t.arg.string({ description: 'Cursor of the last one that you have.' }),
    },
    resolve: async (_root, { first, after }, ctx, info) => {
      checkPage({ first })
      const take = first ?? limits.pageSizeDefault
      const paths = [['nodes'], ['edges', 'node']]
      const selected = (typeName: string) => queryFromInfo({ context: ctx, info, typeName, paths }) as object
      const queries = { payout: selected('Payout'), batch: selected('Batch') }
      const found = await readWaiting(ctx, queries, after ?? null, take + 1)
      const edges = found.slice(0, take)
      return {
        edges,
        pageInfo: {
          hasNextPage: found.length > take,
          hasPreviousPage: after != null,
          startCursor: edges.at(0)?.cursor ?? null,
          endCursor: edges.at(-1)?.cursor ?? null,
        },
      }
    },
  }),
)

const idWords = 'Its global id, or its id in REST.'
const digestWords = 'The `approval.digest` that you saw.'
const reasonWords = 'Why, in 1 to 200 characters.'
const decisionRefusals = refusals('INVALID_INPUT', 'FORBIDDEN', 'NOT_FOUND', 'STATE_CONFLICT')

builder.mutationFields((t) => ({
  approvePayout: t.prismaField({
    type: 'Payout',
    nullable: true,
    scope: ['payout'],
    movesMoney: true,
    description: 'Approves a payout of somebody else. The last approval that is needed lets it go.',
    errors: decisionRefusals,
    args: {
      id: t.arg.id({ required: true, description: idWords }),
      digest: t.arg.string({ required: true, description: digestWords }),
    },
    resolve: async (query, _root, args, ctx) =>
      readPayout(ctx, query, await approve(ctx, 'payout', args.id, args.digest)),
  }),
  rejectPayout: t.prismaField({
    type: 'Payout',
    nullable: true,
    scope: ['payout'],
    description: 'Rejects a payout of somebody else: it is cancelled, and its money free again.',
    errors: decisionRefusals,
    args: {
      id: t.arg.id({ required: true, description: idWords }),
      reason: t.arg.string({ required: true, description: reasonWords }),
    },
    resolve: async (query, _root, args, ctx) =>
      readPayout(ctx, query, await reject(ctx, 'payout', args.id, args.reason)),
  }),
  approveBatch: t.prismaField({
    type: 'Batch',
    nullable: true,
    scope: ['bulk_pay'],
    movesMoney: true,
    description: 'Approves a batch of other people. The last approval that is needed lets it go.',
    errors: decisionRefusals,
    args: {
      id: t.arg.id({ required: true, description: idWords }),
      digest: t.arg.string({ required: true, description: digestWords }),
    },
    resolve: async (query, _root, args, ctx) =>
      readBatch(ctx, query, await approve(ctx, 'batch', args.id, args.digest)),
  }),
  rejectBatch: t.prismaField({
    type: 'Batch',
    nullable: true,
    scope: ['bulk_pay'],
    description: 'Rejects a batch of other people: all of it is cancelled, and its money free again.',
    errors: decisionRefusals,
    args: {
      id: t.arg.id({ required: true, description: idWords }),
      reason: t.arg.string({ required: true, description: reasonWords }),
    },
    resolve: async (query, _root, args, ctx) =>
      readBatch(ctx, query, await reject(ctx, 'batch', args.id, args.reason)),
  }),
}))

function readPayout(ctx: Context, query: object, id: bigint) {
  return ctx.database.prisma.payout.findFirstOrThrow({ ...query, where: { id, ...mine(ctx) } })
}

function readBatch(ctx: Context, query: object, id: bigint) {
  return ctx.database.prisma.batch.findFirstOrThrow({ ...query, where: { id: Number(id), ...mine(ctx) } })
}

type Told = LogEvent<ApprovalEventData>

const Change = builder.objectRef<Told>('ApprovalChange').implement({
  description: 'A change of something that waits for approval, as it was at that moment.',
  interfaces: [LogChange],
  scope: seesApprovals,
  fields: (t) => ({
    status: t.field({ type: Status, resolve: ({ data }) => data.approval as ApprovalStatus }),
    approvals: t.int({
      nullable: true,
      description: 'Of an approval: how many count with it.',
      resolve: ({ data }) => data.approvals ?? null,
    }),
    memberId: t.int({
      nullable: true,
      description: 'Who approved or rejected it: the id in REST.',
      resolve: ({ data }) => data.approved_by ?? data.rejected_by ?? null,
    }),
    reason: t.string({
      nullable: true,
      description: 'Why it was rejected.',
      resolve: ({ data }) => data.rejection_reason ?? null,
    }),
    payout: t.prismaField({
      type: 'Payout',
      nullable: true,
      description: 'Of a payout: what it is now.',
      resolve: (query, { data }, _args, ctx) =>
        'payout_id' in data
          ? ctx.database.prisma.payout.findFirst({
              ...query,
              where: { id: BigInt(data.payout_id), ...mine(ctx) },
            })
          : null,
    }),
    batch: t.prismaField({
      type: 'Batch',
      nullable: true,
      description: 'Of a batch: what it is now.',
      resolve: (query, { data }, _args, ctx) =>
        'batch_id' in data
          ? ctx.database.prisma.batch.findFirst({ ...query, where: { id: data.batch_id, ...mine(ctx) } })
          : null,
    }),
  }),
})

builder.subscriptionField('approvalsChanged', (t) =>
  t.field({
    type: Change,
    scope: seesApprovals,
    description:
      'What begins to wait for approval, is approved, rejected, cancelled or expires, in order, of the ' +
      'kinds that the token may see. It can be resumed.',
    args: { after: t.arg.string({ description: afterWords }) },
    subscribe: (_root, { after }, ctx) => {
      const seen = subjectsSeenBy(ctx)
      return followLog(
        ctx,
        after,
        (event) => isApprovalEvent(event) && seen.includes('batch_id' in event.data ? 'batch' : 'payout'),
      )
    },
    resolve: (event) => event as Told,
  }),
)
