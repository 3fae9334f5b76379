import { builder } from '../../graphql/builder.ts'
import { MemberRole, stateEnum } from '../../graphql/enums.ts'
import { type Asked, type Obstacle, obstacles, obstacleTo, type Verdict, verdictsOf } from './asked.ts'
import { approvalStates } from './states.ts'

// What is said of everything that may wait for people, and where it is said.

export const ApprovalStatusEnum = stateEnum(
  'ApprovalStatus',
  approvalStates,
  'Whether people let something go.',
)

const Approver = builder.objectRef<Verdict>('Approver').implement({
  description: 'A member of the team, as one who decides.',
  fields: (t) => ({
    databaseId: t.expose('memberId', { type: 'SafeInt', description: 'Its id in REST.' }),
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
      description:
        'False where the member was removed since, has a role that no longer approves, or got a higher ' +
        'role less than 24 hours ago.',
    }),
  }),
})

const ApprovalObstacle = builder.enumType('ApprovalObstacle', {
  description: 'Why a caller cannot approve something.',
  values: Object.fromEntries(
    Object.entries(obstacles).map(([name, description]) => [name, { value: name as Obstacle, description }]),
  ) as Record<Obstacle, { value: Obstacle; description: string }>,
})

const Approval = builder.objectRef<Asked>('Approval').implement({
  description: 'Whether people let something go, where its merchant asks for that.',
  fields: (t) => ({
    status: t.field({ type: ApprovalStatusEnum, resolve: ({ approval }) => approval }),
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
      description:
        'Whether the caller may approve it now: a signed-in member who did not ask for it, and joined or ' +
        'got the role at least 24 hours ago.',
      resolve: async (asked, _args, ctx) => (await obstacleTo(ctx, asked)) === null,
    }),
    cannotApproveBecause: t.field({
      type: ApprovalObstacle,
      nullable: true,
      perPerson: true,
      description: 'Why the caller may not approve it now; null where it may.',
      resolve: (asked, _args, ctx) => obstacleTo(ctx, asked),
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
      makers: [makerMemberId ?? 0],
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

builder.prismaObjectField('Transaction', 'approval', (t) =>
  t.field({
    type: Approval,
    nullable: true,
    description: 'Of a deposit or a refund that waits, or waited, for people to approve it.',
    select: { approval: true },
    resolve: ({ approval }) => approval && depositAsked(approval),
  }),
)

export const DepositApproval = builder.prismaObject('DepositApproval', {
  description: 'A deposit or a refund that waits, or waited, for people to approve it.',
  fields: (t) => ({
    databaseId: t.expose('id', { type: 'SafeInt', description: 'The id of the transaction.' }),
    transaction: t.relation('transaction'),
    approval: t.field({
      type: Approval,
      select: {
        id: true,
        approval: true,
        approvalDigest: true,
        approvalExpiresAt: true,
        approvalsRequired: true,
        makerMemberId: true,
      },
      resolve: (deposit) => depositAsked(deposit),
    }),
  }),
})

type WaitingDeposit = Omit<Asked, 'subject' | 'waits' | 'makers'> & { makerMemberId: number | null }

function depositAsked(deposit: WaitingDeposit): Asked {
  const { makerMemberId, ...asked } = deposit
  return { ...asked, subject: 'deposit', waits: asked.approval === 'pending', makers: [makerMemberId ?? 0] }
}

builder.prismaObjectField('SettingsChange', 'approval', (t) =>
  t.field({
    type: Approval,
    select: {
      id: true,
      approval: true,
      approvalDigest: true,
      approvalExpiresAt: true,
      approvalsRequired: true,
      makerMemberId: true,
    },
    resolve: ({ id, makerMemberId, ...change }): Asked => ({
      ...change,
      subject: 'settings',
      id: BigInt(id),
      waits: change.approval === 'pending',
      makers: [makerMemberId],
    }),
  }),
)
