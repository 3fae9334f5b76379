import { mine } from '../../identity/actor.ts'
import { builder } from '../../graphql/builder.ts'
import { inputOf } from '../../graphql/input.ts'
import { wordEnum } from '../../graphql/enums.ts'
import { refusals } from '../../graphql/errors.ts'
import { approvalGaps, locales, updateSettings, updateSettingsInput } from './update.ts'

const Locale = wordEnum('Locale', locales, 'A language that people are written to in.')

/** What a change sets; null of what it leaves as it is. */
interface Changes {
  payouts_require_approval?: boolean
  approval_threshold?: number
  approvals_required?: number
  approvals_cover_deposits?: boolean
}
const changesIn = (after: unknown) => after as Changes

const SettingsChange = builder.prismaObject('SettingsChange', {
  description:
    'A change of the settings that loosens approvals. It waits for as many people as the approvals ask ' +
    'for, at most seven days; what it leaves as it is is null.',
  fields: (t) => ({
    databaseId: t.expose('id', { type: 'SafeInt', description: 'Names it to `approveSettingsChange`.' }),
    payoutsRequireApproval: t.boolean({
      nullable: true,
      resolve: ({ after }) => changesIn(after).payouts_require_approval ?? null,
    }),
    approvalThreshold: t.field({
      type: 'Amount',
      nullable: true,
      description: 'Whole XOF.',
      resolve: ({ after }) => {
        const threshold = changesIn(after).approval_threshold
        return threshold === undefined ? null : BigInt(threshold)
      },
    }),
    approvalsRequired: t.int({
      nullable: true,
      resolve: ({ after }) => changesIn(after).approvals_required ?? null,
    }),
    approvalsCoverDeposits: t.boolean({
      nullable: true,
      resolve: ({ after }) => changesIn(after).approvals_cover_deposits ?? null,
    }),
    memberId: t.exposeInt('makerMemberId', { description: 'The member who asked for it: the id in REST.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
  }),
})

const Settings = builder.prismaObject('Merchant', {
  variant: 'Settings',
  description: 'What a merchant decides about its account.',
  fields: (t) => ({
    businessName: t.exposeString('name'),
    notificationEmail: t.exposeString('notificationEmail', {
      nullable: true,
      description: 'Where the account itself is written to.',
    }),
    payoutsRequireApproval: t.exposeBoolean('payoutsRequireApproval', {
      description: 'Whether payouts and batches of `approvalThreshold` and more wait for people.',
    }),
    approvalThreshold: t.expose('approvalThreshold', { type: 'Amount', description: 'Whole XOF.' }),
    approvalsRequired: t.exposeInt('approvalsRequired', { description: 'How many people: 1 to 3.' }),
    approvalsCoverDeposits: t.exposeBoolean('approvalsCoverDeposits', {
      description: 'Whether deposits and refunds of `approvalThreshold` and more wait too.',
    }),
    approvalGaps: t.stringList({
      description:
        'What approvals do not keep one person from doing as the settings are now, in sentences; empty ' +
        'while `payoutsRequireApproval` is off.',
      resolve: (_settings, _args, ctx) => approvalGaps(ctx),
    }),
    pendingChange: t.prismaField({
      type: SettingsChange,
      nullable: true,
      description: 'A change that loosens approvals and waits for people.',
      resolve: (query, _settings, _args, ctx) =>
        ctx.database.prisma.settingsChange.findFirst({
          ...query,
          where: { ...mine(ctx), approval: 'pending' },
        }),
    }),
    ipWhitelist: t.exposeStringList('ipWhitelist', {
      description: 'Addresses and CIDR ranges that may use the account; none lets all in.',
    }),
    locale: t.expose('locale', { type: Locale }),
  }),
})

builder.queryField('settings', (t) =>
  t.prismaField({
    type: Settings,
    nullable: true,
    scope: ['settings'],
    description: 'The settings of the account.',
    resolve: (query, _root, _args, ctx) =>
      ctx.database.prisma.merchant.findFirst({ ...query, where: { id: mine(ctx).merchantId } }),
  }),
)

const UpdateSettingsInput = inputOf('UpdateSettingsInput', updateSettingsInput, {
  description: 'What changes of the settings; what is left out stays.',
  fields: {
    businessName: '1 to 200 characters.',
    notificationEmail: 'Empty removes it.',
    approvalThreshold: 'Whole XOF; of 0 every payout waits.',
    approvalsRequired: '1 to 3 people who must approve each.',
    approvalsCoverDeposits: 'Whether deposits and refunds wait too; false where it was never set.',
    ipWhitelist:
      'At most 50 IPv4 or IPv6 addresses and CIDR ranges, yours among them. It holds within a second.',
  },
})

builder.mutationField('updateSettings', (t) =>
  t.prismaField({
    type: Settings,
    nullable: true,
    scope: ['settings'],
    description:
      'Changes what is given of the settings. What loosens approvals that are on waits for as many people ' +
      'as they ask for, as `pendingChange`; no API key asks for it.',
    errors: refusals('INVALID_INPUT', 'FORBIDDEN', 'STATE_CONFLICT'),
    args: { input: t.arg({ type: UpdateSettingsInput, required: true }) },
    resolve: async (query, _root, { input }, ctx) => {
      await updateSettings(ctx, input)
      return ctx.database.prisma.merchant.findFirst({ ...query, where: { id: mine(ctx).merchantId } })
    },
  }),
)
