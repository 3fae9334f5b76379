import { builder } from '../../graphql/builder.ts'
import { MemberRole, stateEnum } from '../../graphql/enums.ts'
import { globalId } from '../../shared/ids.ts'
import { limits } from '../../shared/limits.ts'
import {
  type Approvable,
  type Obstacle,
  obstacles,
  obstacleTo,
  type ApprovalVerdict,
  verdictsOf,
} from './approvable.ts'
import { Approver, AuthorType } from './author-type.ts'
import { authorOf } from './authors.ts'
import { approvalStates } from './states.ts'

// The GraphQL type `Approval`, and the field `approval` of every type that may need an approval.

export const ApprovalStatusEnum = stateEnum('ApprovalStatus', approvalStates, 'The status of an approval.', {
  approved: 'Enough members approved the request.',
  expired: 'Nothing was decided within seven days, and the request was cancelled.',
  not_required: 'The settings did not ask for an approval.',
  pending: 'The request waits for approvals.',
  rejected: 'A member rejected the request, and it was cancelled.',
})

const VerdictType = builder.objectRef<ApprovalVerdict>('ApprovalVerdict').implement({
  description: 'An approval or a rejection by one member.',
  fields: (t) => ({
    member: t.field({
      type: Approver,
      description: 'The member who decided.',
      resolve: (verdict) => verdict,
    }),
    role: t.expose('role', {
      type: MemberRole,
      description: 'The role of the member at the moment of the decision.',
    }),
    at: t.expose('at', { type: 'DateTime', description: 'The moment of the decision.' }),
    counts: t.exposeBoolean('counts', {
      description:
        'True while the decision counts. False after the member was removed, received a role ' +
        'that cannot approve, or received a higher role less than 24 hours ago.',
    }),
  }),
})

const ApprovalObstacle = builder.enumType('ApprovalObstacle', {
  description: 'The reason why the caller cannot approve a request.',
  values: Object.fromEntries(
    Object.entries(obstacles).map(([name, description]) => [name, { value: name as Obstacle, description }]),
  ) as Record<Obstacle, { value: Obstacle; description: string }>,
})

const Approval = builder.objectRef<Approvable>('Approval').implement({
  description: 'The state of the approval of a payout, batch, deposit or settings change.',
  fields: (t) => ({
    status: t.field({
      type: ApprovalStatusEnum,
      description: 'The present status of the approval.',
      resolve: ({ approval }) => approval,
    }),
    required: t.exposeInt('approvalsRequired', {
      description:
        'Number of people who must approve, by the settings at the time of the request; 0 when ' +
        'no approval is required.',
    }),
    requestedBy: t.field({
      type: AuthorType,
      nullable: true,
      description:
        'The member or the API key that requested what is approved: for a batch, its processing. Null when ' +
        'no approval is required.',
      resolve: ({ request }) => request?.by ?? null,
    }),
    requestedAt: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'The moment of that request; null when no approval is required.',
      resolve: ({ request }) => request?.at ?? null,
    }),
    approvedBy: t.field({
      type: [VerdictType],
      description: 'The approvals that were given, oldest first.',
      resolve: async (approvable, _args, ctx) =>
        (await verdictsOf(ctx, approvable)).filter(({ verdict }) => verdict === 'approved'),
    }),
    rejectedBy: t.field({
      type: VerdictType,
      nullable: true,
      description: 'The rejection; null when it was not rejected.',
      resolve: async (approvable, _args, ctx) => rejection(await verdictsOf(ctx, approvable)) ?? null,
    }),
    reason: t.string({
      nullable: true,
      description: 'The reason that a member gave for the rejection; null when it was not rejected.',
      resolve: async (approvable, _args, ctx) => rejection(await verdictsOf(ctx, approvable))?.reason ?? null,
    }),
    digest: t.string({
      nullable: true,
      description:
        'SHA-256 of all that is approved: payees, amounts, operators and dates. Send it back in ' +
        'the approve mutation, which proves that you approve what you saw. Null when no approval is ' +
        'required.',
      resolve: ({ approvalDigest }) => approvalDigest && Buffer.from(approvalDigest).toString('hex'),
    }),
    expiresAt: t.expose('approvalExpiresAt', {
      type: 'DateTime',
      nullable: true,
      description:
        'The moment when the request is cancelled if it is not approved; null when it needs no ' +
        'approval.',
    }),
    canApprove: t.boolean({
      perPerson: true,
      description: 'True when the caller may approve now; otherwise `cannotApproveBecause` gives the reason.',
      resolve: async (approvable, _args, ctx) => (await obstacleTo(ctx, approvable)) === null,
    }),
    cannotApproveBecause: t.field({
      type: ApprovalObstacle,
      nullable: true,
      perPerson: true,
      description: 'The reason why the caller may not approve now; null when the caller may.',
      resolve: (approvable, _args, ctx) => obstacleTo(ctx, approvable),
    }),
  }),
})

function rejection(verdicts: readonly ApprovalVerdict[]): ApprovalVerdict | undefined {
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
    description: 'The approval of the payout.',
    select: { ...asking, maker: true, makerMemberId: true, createdAt: true },
    resolve: ({ status, maker, makerMemberId, createdAt, ...payout }): Approvable => ({
      ...payout,
      subject: 'payout',
      waits: status === 'pending' && payout.approval === 'pending',
      makers: [makerMemberId ?? 0],
      request:
        payout.approval === 'not_required' ? null : { by: authorOf(maker, makerMemberId), at: createdAt },
    }),
  }),
)

builder.prismaObjectField('Batch', 'approval', (t) =>
  t.field({
    type: Approval,
    description: 'The approval of the batch.',
    select: {
      ...asking,
      makerMemberIds: true,
      maker: true,
      approvalRequestedBy: true,
      approvalRequesterId: true,
      approvalRequestedAt: true,
    },
    resolve: ({ id, status, makerMemberIds, ...batch }): Approvable => {
      const { approvalExpiresAt: expiry, approvalRequesterId } = batch
      // A node of the previous release stores no request: the maker and the length of the wait stand for it.
      const by = batch.approvalRequestedBy ?? batch.maker
      const at =
        batch.approvalRequestedAt ?? (expiry && new Date(expiry.getTime() - limits.approvalLifetimeMs))
      return {
        ...batch,
        subject: 'batch',
        id: BigInt(id),
        waits: status === 'pending_approval',
        makers: makerMemberIds,
        request: at && { by: authorOf(by, approvalRequesterId), at },
      }
    },
  }),
)

builder.prismaObjectField('Transaction', 'approval', (t) =>
  t.field({
    type: Approval,
    nullable: true,
    description: 'The approval of a deposit or refund; null when it needed none.',
    select: { approval: true, createdAt: true },
    resolve: ({ approval, createdAt }) => approval && depositApprovable(approval, createdAt),
  }),
)

export const DepositApproval = builder.prismaObject('DepositApproval', {
  description: 'A deposit or refund that needs or needed an approval.',
  fields: (t) => ({
    id: t.id({
      select: { id: true },
      description: 'The global id of the transaction: `approveDeposit(id:)` takes it.',
      resolve: ({ id }) => globalId('Transaction', id),
    }),
    databaseId: t.expose('id', { type: 'SafeInt', description: 'The REST id of the transaction.' }),
    transaction: t.relation('transaction', {
      description: 'The transaction that pays the deposit or refund.',
    }),
    approval: t.field({
      type: Approval,
      description: 'The approval of the deposit or refund.',
      select: {
        id: true,
        approval: true,
        approvalDigest: true,
        approvalExpiresAt: true,
        approvalsRequired: true,
        maker: true,
        makerMemberId: true,
        transaction: { select: { createdAt: true } },
      },
      resolve: ({ transaction, ...deposit }) => depositApprovable(deposit, transaction.createdAt),
    }),
  }),
})

type WaitingDeposit = Omit<Approvable, 'subject' | 'waits' | 'makers' | 'request'> & {
  maker: string
  makerMemberId: number | null
}

function depositApprovable(deposit: WaitingDeposit, at: Date): Approvable {
  const { maker, makerMemberId, ...approvable } = deposit
  return {
    ...approvable,
    subject: 'deposit',
    waits: approvable.approval === 'pending',
    makers: [makerMemberId ?? 0],
    request: { by: authorOf(maker, makerMemberId), at },
  }
}

builder.prismaObjectField('SettingsChange', 'approval', (t) =>
  t.field({
    type: Approval,
    description: 'The approval of the change.',
    select: {
      id: true,
      approval: true,
      approvalDigest: true,
      approvalExpiresAt: true,
      approvalsRequired: true,
      makerMemberId: true,
      createdAt: true,
    },
    resolve: ({ id, makerMemberId, createdAt, ...change }): Approvable => ({
      ...change,
      subject: 'settings',
      id: BigInt(id),
      waits: change.approval === 'pending',
      makers: [makerMemberId],
      request: { by: authorOf(`member:${makerMemberId}`, makerMemberId), at: createdAt },
    }),
  }),
)
