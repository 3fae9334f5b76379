import { mine } from '../../access/actor.ts'
import { builder } from '../../graphql/builder.ts'
import { wordEnum } from '../../graphql/enums.ts'
import { refusals } from '../../graphql/errors.ts'
import { locales, updateSettings } from './update.ts'

const Locale = wordEnum('Locale', locales, 'A language that people are written to in.')

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
      description: 'Whether payouts of `approvalThreshold` and more wait for a person.',
    }),
    approvalThreshold: t.expose('approvalThreshold', { type: 'Amount', description: 'Whole XOF.' }),
    approvalsRequired: t.exposeInt('approvalsRequired', { description: 'How many people: 1 to 3.' }),
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

const UpdateSettingsInput = builder.inputType('UpdateSettingsInput', {
  description: 'What changes of the settings; what is left out stays.',
  fields: (t) => ({
    businessName: t.string({ description: '1 to 200 characters.' }),
    notificationEmail: t.string({ description: 'Empty removes it.' }),
    payoutsRequireApproval: t.boolean(),
    approvalThreshold: t.field({ type: 'Amount', description: 'Whole XOF; of 0 every payout waits.' }),
    approvalsRequired: t.int({ description: '1 to 3 people who must approve each.' }),
    ipWhitelist: t.stringList({
      description:
        'At most 50 IPv4 or IPv6 addresses and CIDR ranges, yours among them. It holds within a second.',
    }),
    locale: t.field({ type: Locale }),
  }),
})

builder.mutationField('updateSettings', (t) =>
  t.prismaField({
    type: Settings,
    nullable: true,
    scope: ['settings'],
    description: 'Changes what is given of the settings. No API key loosens approvals that are asked for.',
    errors: refusals('INVALID_INPUT', 'FORBIDDEN'),
    args: { input: t.arg({ type: UpdateSettingsInput, required: true }) },
    resolve: async (query, _root, { input }, ctx) => {
      await updateSettings(ctx, input)
      return ctx.database.prisma.merchant.findFirst({ ...query, where: { id: mine(ctx).merchantId } })
    },
  }),
)
