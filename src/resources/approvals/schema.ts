import { mine } from '../../identity/callers/actor.ts'
import {
  type ApprovalEventData,
  approvalTypes,
  isApprovalEvent,
  type LogEvent,
} from '../../events/catalogue.ts'
import type { Context } from '../../context.ts'
import { builder } from '../../graphql/builder.ts'
import { connectionType, firstArg, lazyConnection, selectedOf } from '../../graphql/connection.ts'
import { refusals } from '../../graphql/errors.ts'
import { afterWords, followLog, LogChange } from '../../graphql/log-changes.ts'
import { modelType } from '../../graphql/model-type.ts'
import { readId, readSmallId } from '../../shared/ids.ts'
import { connect, readPageOf } from '../../shared/page.ts'
import { ApprovalStatusEnum, DepositApproval } from './approval-type.ts'
import { approve, reject } from './decide.ts'
import type { ApprovalStatus } from './states.ts'
import { seesApprovals, type ApprovalSubjectKind, subjectsSeenBy } from './subjects.ts'
import { countWaiting, readCursor, readWaiting } from './waiting.ts'

const SubjectType = builder.unionType('ApprovalSubject', {
  description: 'A request that may need an approval.',
  types: [modelType('Payout'), modelType('Batch'), modelType('SettingsChange'), DepositApproval],
  resolveType: (row) => types[(row as unknown as { subject: ApprovalSubjectKind }).subject],
})

const types = {
  payout: 'Payout',
  batch: 'Batch',
  settings: 'SettingsChange',
  deposit: 'DepositApproval',
} as const satisfies Record<ApprovalSubjectKind, string>

const cursorColumns = { id: true, approvalExpiresAt: true }

const Waiting = connectionType(SubjectType, 'ApprovalsWaiting', 'A page of requests that wait for approval.')

builder.queryField('approvalsWaiting', (t) =>
  t.field({
    type: Waiting,
    nullable: true,
    scope: seesApprovals,
    description:
      'Requests that wait for approval and that the token may see, in the order of their ' +
      'expiry. `canApprove` shows which ones the caller can approve.',
    args: {
      first: t.arg.int(firstArg),
      after: t.arg.string({ description: 'The cursor of the last request that you have.' }),
    },
    resolve: (_root, args, ctx, info) => {
      const page = readPageOf(args, readCursor)
      const selected = {
        payout: selectedOf(ctx, info, 'Payout', cursorColumns),
        batch: selectedOf(ctx, info, 'Batch', cursorColumns),
        settings: selectedOf(ctx, info, 'SettingsChange', cursorColumns),
        deposit: selectedOf(ctx, info, 'DepositApproval', cursorColumns),
      }
      return lazyConnection(
        async () => connect(page, await readWaiting(ctx, selected, page)),
        () => countWaiting(ctx),
      )
    },
  }),
)

const digestWords =
  'The `approval.digest` that you saw. The service refuses another value, so that you cannot approve a ' +
  'request that changed after you read it.'
const reasonWords = 'The reason of the rejection, 1 to 200 characters.'
const decisionRefusals = refusals('INVALID_INPUT', 'FORBIDDEN', 'NOT_FOUND', 'STATE_CONFLICT')

builder.mutationFields((t) => ({
  approvePayout: t.prismaField({
    type: 'Payout',
    nullable: true,
    scope: ['payout'],
    movesMoney: true,
    description: 'Approves a payout that another member requested. The last required approval sends it.',
    errors: decisionRefusals,
    args: {
      id: t.arg.id({ required: true, description: 'The payout: its global id, or its id in REST.' }),
      digest: t.arg.string({ required: true, description: digestWords }),
    },
    resolve: async (query, _root, args, ctx) =>
      readPayout(ctx, query, await approve(ctx, 'payout', readId('Payout', args.id), args.digest)),
  }),
  rejectPayout: t.prismaField({
    type: 'Payout',
    nullable: true,
    scope: ['payout'],
    description:
      'Rejects a payout that another member requested. It is cancelled, and its money is ' +
      'available again.',
    errors: decisionRefusals,
    args: {
      id: t.arg.id({ required: true, description: 'The payout: its global id, or its id in REST.' }),
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
    description:
      'Approves a batch that another member requested. The last required approval starts the payments.',
    errors: decisionRefusals,
    args: {
      id: t.arg.id({ required: true, description: 'The batch: its global id, or its id in REST.' }),
      digest: t.arg.string({ required: true, description: digestWords }),
    },
    resolve: async (query, _root, args, ctx) =>
      readBatch(ctx, query, await approve(ctx, 'batch', BigInt(readSmallId('Batch', args.id)), args.digest)),
  }),
  rejectBatch: t.prismaField({
    type: 'Batch',
    nullable: true,
    scope: ['bulk_pay'],
    description:
      'Rejects a batch that another member requested. The whole batch is cancelled, and its ' +
      'money is available again.',
    errors: decisionRefusals,
    args: {
      id: t.arg.id({ required: true, description: 'The batch: its global id, or its id in REST.' }),
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
      'Approves a deposit or refund that another member requested. The last required approval sends it.',
    errors: decisionRefusals,
    args: {
      id: t.arg.id({ required: true, description: 'The transaction: its global id, or its id in REST.' }),
      digest: t.arg.string({ required: true, description: digestWords }),
    },
    resolve: async (query, _root, args, ctx) =>
      readDeposit(ctx, query, await approve(ctx, 'deposit', readId('Transaction', args.id), args.digest)),
  }),
  rejectDeposit: t.prismaField({
    type: 'Transaction',
    nullable: true,
    scope: ['deposit'],
    description:
      'Rejects a deposit or refund that waits for approval. It is cancelled, and its money is ' +
      'available again.',
    errors: decisionRefusals,
    args: {
      id: t.arg.id({ required: true, description: 'The transaction: its global id, or its id in REST.' }),
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
      'Approves a settings change that another member requested and that makes approvals less ' +
      'strict. The last required approval applies it.',
    errors: decisionRefusals,
    args: {
      id: t.arg.id({ required: true, description: 'The settings change: its global id, or its id in REST.' }),
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
      'Rejects a settings change that waits for approval. Nothing changes. The member who ' +
      'requested it may also reject it.',
    errors: decisionRefusals,
    args: {
      id: t.arg.id({ required: true, description: 'The settings change: its global id, or its id in REST.' }),
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

type ApprovalEvent = LogEvent<ApprovalEventData>

/** Returns the kind of item that an event about an approval refers to. */
function subjectOf({ data }: ApprovalEvent): ApprovalSubjectKind {
  if ('settings_change_id' in data) return 'settings'
  if ('transaction_id' in data) return 'deposit'
  return 'batch_id' in data ? 'batch' : 'payout'
}

const Change = builder.objectRef<ApprovalEvent>('ApprovalChange').implement({
  description:
    'A change of an approval. The status and the count are those right after the change; `batch`, ' +
    '`payout`, `settingsChange` and `transaction` have their present state.',
  interfaces: [LogChange],
  scope: seesApprovals,
  fields: (t) => ({
    status: t.field({
      type: ApprovalStatusEnum,
      description: 'The status of the approval after this change.',
      resolve: ({ data }) => data.approval as ApprovalStatus,
    }),
    approvals: t.int({
      nullable: true,
      description:
        'Number of approvals that count, this one included; null when the change is not an approval.',
      resolve: ({ data }) => data.approvals ?? null,
    }),
    memberId: t.int({
      nullable: true,
      description: 'The REST id of the member who approved or rejected; null for other changes.',
      resolve: ({ data }) => data.approved_by ?? data.rejected_by ?? null,
    }),
    reason: t.string({
      nullable: true,
      description: 'The reason of a rejection; null for other changes.',
      resolve: ({ data }) => data.rejection_reason ?? null,
    }),
    payout: t.prismaField({
      type: 'Payout',
      nullable: true,
      description:
        'The present state of the payout that the approval is about; null when it is about ' +
        'something else.',
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
      description:
        'The present state of the batch that the approval is about; null when it is about ' +
        'something else.',
      resolve: (query, { data }, _args, ctx) =>
        'batch_id' in data
          ? ctx.database.prisma.batch.findFirst({ ...query, where: { id: data.batch_id, ...mine(ctx) } })
          : null,
    }),
    transaction: t.prismaField({
      type: 'Transaction',
      nullable: true,
      description:
        'The present state of the deposit or refund that the approval is about; null when it is ' +
        'about something else.',
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
      description:
        'The present state of the settings change that the approval is about; null when it is ' +
        'about something else.',
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
      'Approvals that the token may see, each time one is requested, given, rejected, ' +
      'cancelled or expired, in order. Pass `after` to resume.',
    args: { after: t.arg.string({ description: afterWords }) },
    subscribe: (_root, { after }, ctx) => {
      const seen = subjectsSeenBy(ctx)
      return followLog(ctx, after, {
        filter: { types: approvalTypes, data: {} },
        also: (event) => isApprovalEvent(event) && seen.includes(subjectOf(event)),
      })
    },
    resolve: (event) => event as ApprovalEvent,
  }),
)
