import { getRefFromModel, type PrismaModelTypes, type PrismaObjectRef } from '@pothos/plugin-prisma'
import { mine } from '../../identity/actor.ts'
import { type ApprovalEventData, isApprovalEvent, type LogEvent } from '../../events/catalogue.ts'
import type { Context } from '../../context.ts'
import { builder } from '../../graphql/builder.ts'
import { countedConnectionType, lazyConnection, selectedOf } from '../../graphql/connection.ts'
import { refusals } from '../../graphql/errors.ts'
import { afterWords, followLog, LogChange } from '../../graphql/log-changes.ts'
import { readId, readSmallId } from '../../shared/ids.ts'
import { connect, readPageOf } from '../../shared/page.ts'
import { ApprovalStatusEnum, DepositApproval } from './approval-type.ts'
import { approve, reject } from './decide.ts'
import type { ApprovalStatus } from './states.ts'
import { seesApprovals, type Subject, subjectsSeenBy } from './subjects.ts'
import { countWaiting, placeOf, readWaiting } from './waiting.ts'

type Model = PrismaObjectRef<typeof builder.$inferSchemaTypes, PrismaModelTypes, object>

/** The type of a model, which another resource states. */
function typeOf(model: 'Payout' | 'Batch' | 'SettingsChange'): Model {
  return getRefFromModel(model, builder) as Model
}

const SubjectType = builder.unionType('ApprovalSubject', {
  description: 'What may wait for approval.',
  types: [typeOf('Payout'), typeOf('Batch'), typeOf('SettingsChange'), DepositApproval],
  resolveType: (row) => {
    if ('recipientCount' in row) return 'Batch'
    if ('after' in row) return 'SettingsChange'
    return 'destinationPhone' in row ? 'Payout' : 'DepositApproval'
  },
})

const Waiting = countedConnectionType(SubjectType, 'ApprovalsWaiting', 'A page of what waits for approval.')

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
    resolve: (_root, args, ctx, info) => {
      const page = readPageOf(args, placeOf)
      const selected = {
        payout: selectedOf(ctx, info, 'Payout'),
        batch: selectedOf(ctx, info, 'Batch'),
        settings: selectedOf(ctx, info, 'SettingsChange'),
        deposit: selectedOf(ctx, info, 'DepositApproval'),
      }
      return lazyConnection(
        async () => connect(page, await readWaiting(ctx, selected, page)),
        () => countWaiting(ctx),
      )
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
      readPayout(ctx, query, await approve(ctx, 'payout', readId('Payout', args.id), args.digest)),
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
      readPayout(ctx, query, await reject(ctx, 'payout', readId('Payout', args.id), args.reason)),
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
      readBatch(ctx, query, await approve(ctx, 'batch', BigInt(readSmallId('Batch', args.id)), args.digest)),
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
      readBatch(ctx, query, await reject(ctx, 'batch', BigInt(readSmallId('Batch', args.id)), args.reason)),
  }),
  approveDeposit: t.prismaField({
    type: 'Transaction',
    nullable: true,
    scope: ['deposit'],
    movesMoney: true,
    description:
      'Approves a deposit or a refund of another member. The last approval that is needed lets it go.',
    errors: decisionRefusals,
    args: {
      id: t.arg.id({ required: true, description: idWords }),
      digest: t.arg.string({ required: true, description: digestWords }),
    },
    resolve: async (query, _root, args, ctx) =>
      readDeposit(ctx, query, await approve(ctx, 'deposit', readId('Transaction', args.id), args.digest)),
  }),
  rejectDeposit: t.prismaField({
    type: 'Transaction',
    nullable: true,
    scope: ['deposit'],
    description: 'Rejects a deposit or a refund that waits: it is cancelled, and its money free again.',
    errors: decisionRefusals,
    args: {
      id: t.arg.id({ required: true, description: idWords }),
      reason: t.arg.string({ required: true, description: reasonWords }),
    },
    resolve: async (query, _root, args, ctx) =>
      readDeposit(ctx, query, await reject(ctx, 'deposit', readId('Transaction', args.id), args.reason)),
  }),
  approveSettingsChange: t.prismaField({
    type: 'SettingsChange',
    nullable: true,
    scope: ['payout'],
    description:
      'Approves a change of the settings that loosens approvals, and that another member asked for. With ' +
      'the last approval that is needed it holds.',
    errors: decisionRefusals,
    args: {
      id: t.arg.id({ required: true, description: idWords }),
      digest: t.arg.string({ required: true, description: digestWords }),
    },
    resolve: async (query, _root, args, ctx) =>
      readChange(
        ctx,
        query,
        await approve(ctx, 'settings', BigInt(readSmallId('SettingsChange', args.id)), args.digest),
      ),
  }),
  rejectSettingsChange: t.prismaField({
    type: 'SettingsChange',
    nullable: true,
    scope: ['payout'],
    description:
      'Rejects a change of the settings that waits: nothing changes. The member who asked for it may do ' +
      'so too.',
    errors: decisionRefusals,
    args: {
      id: t.arg.id({ required: true, description: idWords }),
      reason: t.arg.string({ required: true, description: reasonWords }),
    },
    resolve: async (query, _root, args, ctx) =>
      readChange(
        ctx,
        query,
        await reject(ctx, 'settings', BigInt(readSmallId('SettingsChange', args.id)), args.reason),
      ),
  }),
}))

function readPayout(ctx: Context, query: object, id: bigint) {
  return ctx.database.prisma.payout.findFirstOrThrow({ ...query, where: { id, ...mine(ctx) } })
}

function readBatch(ctx: Context, query: object, id: bigint) {
  return ctx.database.prisma.batch.findFirstOrThrow({ ...query, where: { id: Number(id), ...mine(ctx) } })
}

function readDeposit(ctx: Context, query: object, id: bigint) {
  return ctx.database.prisma.transaction.findFirstOrThrow({ ...query, where: { id, ...mine(ctx) } })
}

function readChange(ctx: Context, query: object, id: bigint) {
  const where = { id: Number(id), ...mine(ctx) }
  return ctx.database.prisma.settingsChange.findFirstOrThrow({ ...query, where })
}

type Told = LogEvent<ApprovalEventData>

/** What an event of approvals tells of. */
function subjectOf({ data }: Told): Subject {
  if ('settings_change_id' in data) return 'settings'
  if ('transaction_id' in data) return 'deposit'
  return 'batch_id' in data ? 'batch' : 'payout'
}

const Change = builder.objectRef<Told>('ApprovalChange').implement({
  description: 'A change of something that waits for approval, as it was at that moment.',
  interfaces: [LogChange],
  scope: seesApprovals,
  fields: (t) => ({
    status: t.field({ type: ApprovalStatusEnum, resolve: ({ data }) => data.approval as ApprovalStatus }),
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
    transaction: t.prismaField({
      type: 'Transaction',
      nullable: true,
      description: 'Of a deposit or a refund: what it is now.',
      resolve: (query, { data }, _args, ctx) =>
        'transaction_id' in data
          ? ctx.database.prisma.transaction.findFirst({
              ...query,
              where: { id: BigInt(data.transaction_id), ...mine(ctx) },
            })
          : null,
    }),
    settingsChange: t.prismaField({
      type: 'SettingsChange',
      nullable: true,
      description: 'Of a change of the settings: what it is now.',
      resolve: (query, { data }, _args, ctx) =>
        'settings_change_id' in data
          ? ctx.database.prisma.settingsChange.findFirst({
              ...query,
              where: { id: data.settings_change_id, ...mine(ctx) },
            })
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
      return followLog(ctx, after, (event) => isApprovalEvent(event) && seen.includes(subjectOf(event)))
    },
    resolve: (event) => event as Told,
  }),
)
