import { queryFromInfo } from '@pothos/plugin-prisma'
import { mine } from '../../access/actor.ts'
import {
  type ApprovalEventData,
  isApprovalEvent,
  type LogEvent,
  type PayoutEventData,
} from '../../events/catalogue.ts'
import { builder } from '../../graphql/builder.ts'
import { MemberRole, stateEnum } from '../../graphql/enums.ts'
import { refusals } from '../../graphql/errors.ts'
import { afterWords, followLog, LogChange } from '../../graphql/log-changes.ts'
import { checkPage } from '../../graphql/pagination.ts'
import { limits } from '../../shared/limits.ts'
import {
  type Approval as ApprovalShape,
  mayApprove,
  type Verdict,
  verdictsOf,
  waitingCursor,
  waitingWhere,
} from './approvals.ts'
import { approvePayout, rejectPayout } from './approve.ts'
import { idWords, Payout } from './schema.ts'
import { type ApprovalStatus, approvalStates } from './states.ts'

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

const Approval = builder.objectRef<ApprovalShape>('Approval').implement({
  description: 'Whether people let something go, where its merchant asks for that.',
  fields: (t) => ({
    status: t.field({ type: Status, resolve: ({ approval }) => approval }),
    required: t.exposeInt('approvalsRequired', {
      description: 'How many people must approve it, as the settings were when it was made; 0 for none.',
    }),
    approvedBy: t.field({
      type: [VerdictType],
      description: 'Who approved it, in order.',
      resolve: async ({ id }, _args, ctx) =>
        (await verdictsOf(ctx, id)).filter(({ verdict }) => verdict === 'approved'),
    }),
    rejectedBy: t.field({
      type: VerdictType,
      nullable: true,
      resolve: async ({ id }, _args, ctx) => rejection(await verdictsOf(ctx, id)) ?? null,
    }),
    reason: t.string({
      nullable: true,
      description: 'Why it was rejected.',
      resolve: async ({ id }, _args, ctx) => rejection(await verdictsOf(ctx, id))?.reason ?? null,
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
      description: 'Whether the caller may approve it now: somebody who signed in, and did not ask for it.',
      resolve: (payout, _args, ctx) => mayApprove(ctx, payout),
    }),
  }),
})

function rejection(verdicts: readonly Verdict[]): Verdict | undefined {
  return verdicts.find(({ verdict }) => verdict === 'rejected')
}

builder.prismaObjectField(Payout, 'approval', (t) =>
  t.field({
    type: Approval,
    select: {
      id: true,
      status: true,
      approval: true,
      approvalDigest: true,
      approvalExpiresAt: true,
      approvalsRequired: true,
      makerMemberId: true,
    },
    resolve: (payout) => payout,
  }),
)

const Subject = builder.unionType('ApprovalSubject', {
  description: 'What may wait for approval.',
  types: [Payout],
  resolveType: () => 'Payout',
})

const Waiting = builder.connectionObject(
  {
    type: Subject,
    name: 'ApprovalsWaitingConnection',
    description: 'A page of what waits for approval.',
    fields: (t) => ({
      totalCount: t.int({
        resolve: (_page, _args, ctx) => ctx.database.prisma.payout.count({ where: waitingWhere(ctx, null) }),
      }),
    }),
  },
  { name: 'ApprovalsWaitingEdge' },
)

builder.queryField('approvalsWaiting', (t) =>
  t.field({
    type: Waiting,
    nullable: true,
    scope: ['payout'],
    description: 'What waits for approval, what expires first before the rest; `canApprove` marks yours.',
    args: {
      first: t.arg.int({ description: '1 to 100; 20 where left out.' }),
      after: t.arg.string({ description: 'Cursor of the last one that you have.' }),
    },
    resolve: async (_root, { first, after }, ctx, info) => {
      checkPage({ first })
      const take = first ?? limits.pageSizeDefault
      const paths = [['nodes'], ['edges', 'node']]
      const query = queryFromInfo({ context: ctx, info, typeName: 'Payout', paths })
      const rows = await ctx.database.prisma.payout.findMany({
        ...(query as object),
        where: waitingWhere(ctx, after ?? null),
        orderBy: [{ approvalExpiresAt: 'asc' }, { id: 'asc' }],
        take: take + 1,
      })
      const edges = rows.slice(0, take).map((node) => ({ cursor: waitingCursor(node), node }))
      return {
        edges,
        pageInfo: {
          hasNextPage: rows.length > take,
          hasPreviousPage: after != null,
          startCursor: edges.at(0)?.cursor ?? null,
          endCursor: edges.at(-1)?.cursor ?? null,
        },
      }
    },
  }),
)

builder.mutationFields((t) => ({
  approvePayout: t.prismaField({
    type: Payout,
    nullable: true,
    scope: ['payout'],
    movesMoney: true,
    description: 'Approves a payout of somebody else. The last approval that is needed lets it go.',
    errors: refusals('INVALID_INPUT', 'FORBIDDEN', 'NOT_FOUND', 'STATE_CONFLICT'),
    args: {
      id: t.arg.id({ required: true, description: idWords }),
      digest: t.arg.string({ required: true, description: 'The `approval.digest` that you saw.' }),
    },
    resolve: async (query, _root, args, ctx) => {
      const { id } = await approvePayout(ctx, args.id, args.digest)
      return ctx.database.prisma.payout.findFirstOrThrow({ ...query, where: { id, ...mine(ctx) } })
    },
  }),
  rejectPayout: t.prismaField({
    type: Payout,
    nullable: true,
    scope: ['payout'],
    description: 'Rejects a payout of somebody else: it is cancelled, and its money free again.',
    errors: refusals('INVALID_INPUT', 'FORBIDDEN', 'NOT_FOUND', 'STATE_CONFLICT'),
    args: {
      id: t.arg.id({ required: true, description: idWords }),
      reason: t.arg.string({ required: true, description: 'Why, in 1 to 200 characters.' }),
    },
    resolve: async (query, _root, args, ctx) => {
      const { id } = await rejectPayout(ctx, args.id, args.reason)
      return ctx.database.prisma.payout.findFirstOrThrow({ ...query, where: { id, ...mine(ctx) } })
    },
  }),
}))

type Told = LogEvent<PayoutEventData | ApprovalEventData>

const Change = builder.objectRef<Told>('ApprovalChange').implement({
  description: 'A change of something that waits for approval, as it was at that moment.',
  interfaces: [LogChange],
  scope: ['payout'],
  fields: (t) => ({
    status: t.field({ type: Status, resolve: ({ data }) => data.approval as ApprovalStatus }),
    approvals: t.int({
      nullable: true,
      description: 'Of an approval: how many count with it.',
      resolve: ({ data }) => ('approvals' in data ? data.approvals : null),
    }),
    memberId: t.int({
      nullable: true,
      description: 'Who approved or rejected it: the id in REST.',
      resolve: ({ data }) => ('approved_by' in data ? data.approved_by : (data.rejected_by ?? null)),
    }),
    reason: t.string({
      nullable: true,
      description: 'Why it was rejected.',
      resolve: ({ data }) => data.rejection_reason ?? null,
    }),
    payout: t.prismaField({
      type: Payout,
      nullable: true,
      description: 'The payout as it is now.',
      resolve: (query, { data }, _args, ctx) =>
        ctx.database.prisma.payout.findFirst({
          ...query,
          where: { id: BigInt(data.payout_id), ...mine(ctx) },
        }),
    }),
  }),
})

builder.subscriptionField('approvalsChanged', (t) =>
  t.field({
    type: Change,
    scope: ['payout'],
    description:
      'What begins to wait for approval, is approved, rejected, cancelled or expires, in order. ' +
      'It can be resumed.',
    args: { after: t.arg.string({ description: afterWords }) },
    subscribe: (_root, { after }, ctx) => followLog(ctx, after, isApprovalEvent),
    resolve: (event) => event as Told,
  }),
)
