import { mine, ownMerchantId } from '../../identity/callers/actor.ts'
import { builder } from '../../graphql/builder.ts'
import { changeWords, inputOf } from '../../graphql/input.ts'
import { wordEnum } from '../../graphql/enums.ts'
import { refusals } from '../../graphql/errors.ts'
import { globalId } from '../../shared/ids.ts'
import {
  approvalGaps,
  approvalsRequiredMax,
  type locales,
  updateSettings,
  updateSettingsInput,
} from './update.ts'
import { limits } from '../../shared/limits.ts'

const Locale = wordEnum<(typeof locales)[number]>(
  'Locale',
  { en: 'The English language.', fr: 'The French language.' },
  'A language for e-mails and pages.',
)

/** The settings that a change sets; settings without a value stay as they are. */
interface Changes {
  payouts_require_approval?: boolean
  approval_threshold?: number
  approvals_required?: number
  approvals_cover_deposits?: boolean
}
const changesIn = (after: unknown) => after as Changes

const SettingsChange = builder.prismaObject('SettingsChange', {
  description:
    'A settings change that makes approvals less strict. It waits at most seven days for as ' +
    'many approvals as the settings require. A setting that it does not change is null.',
  fields: (t) => ({
    id: t.id({
      description: 'The id of the change, for `approveSettingsChange(id:)`; `node(id:)` does not find it.',
      resolve: ({ id }) => globalId('SettingsChange', id),
    }),
    databaseId: t.expose('id', {
      type: 'SafeInt',
      description: 'The id of the change, for `approveSettingsChange`.',
    }),
    payoutsRequireApproval: t.boolean({
      nullable: true,
      description: 'The new value of `payoutsRequireApproval`; null if this change does not touch it.',
      resolve: ({ after }) => changesIn(after).payouts_require_approval ?? null,
    }),
    approvalThreshold: t.field({
      type: 'Amount',
      nullable: true,
      description: 'The new threshold in whole XOF; null if this change does not touch the threshold.',
      resolve: ({ after }) => {
        const threshold = changesIn(after).approval_threshold
        return threshold === undefined ? null : BigInt(threshold)
      },
    }),
    approvalsRequired: t.int({
      nullable: true,
      description: 'The new number of required approvals; null if this change does not touch it.',
      resolve: ({ after }) => changesIn(after).approvals_required ?? null,
    }),
    approvalsCoverDeposits: t.boolean({
      nullable: true,
      description: 'The new value of `approvalsCoverDeposits`; null if this change does not touch it.',
      resolve: ({ after }) => changesIn(after).approvals_cover_deposits ?? null,
    }),
    memberId: t.exposeInt('makerMemberId', {
      description: 'The REST id of the member who requested the change.',
    }),
    createdAt: t.expose('createdAt', {
      type: 'DateTime',
      description: 'The moment when the change was requested.',
    }),
  }),
})

const Settings = builder.prismaNode('Merchant', {
  variant: 'Settings',
  id: { field: 'id' },
  findUnique: (id, ctx) => ({ id: ownMerchantId(ctx, 'Settings', id) }),
  nullable: true,
  scope: ['settings'],
  description: 'The settings of a merchant account.',
  fields: (t) => ({
    businessName: t.exposeString('name', { description: 'The name of the business, as customers see it.' }),
    notificationEmail: t.exposeString('notificationEmail', {
      nullable: true,
      description: 'The e-mail address for messages about the account; null when there is none.',
    }),
    businessPhone: t.exposeString('businessPhone', {
      nullable: true,
      description:
        'The telephone number (E.164) that payers read on the public pages; null when there is none.',
    }),
    businessAddress: t.exposeString('businessAddress', {
      nullable: true,
      description: 'The address that payers read on the public pages; null when there is none.',
    }),
    payoutsRequireApproval: t.exposeBoolean('payoutsRequireApproval', {
      description: 'True when payouts and batches of `approvalThreshold` or more require approvals.',
    }),
    approvalThreshold: t.expose('approvalThreshold', {
      type: 'Amount',
      description: 'The amount in whole XOF from which approvals are required.',
    }),
    approvalsRequired: t.exposeInt('approvalsRequired', {
      description: `Number of people who must approve a request, 1 to ${approvalsRequiredMax}.`,
    }),
    approvalsCoverDeposits: t.exposeBoolean('approvalsCoverDeposits', {
      description: 'True when deposits and refunds of `approvalThreshold` or more also require approvals.',
    }),
    approvalGaps: t.stringList({
      description:
        'Sentences about payments that need no approval, and about API keys whose payments no ' +
        'member can approve. Empty while `payoutsRequireApproval` is off.',
      resolve: (_settings, _args, ctx) => approvalGaps(ctx),
    }),
    pendingChange: t.prismaField({
      type: SettingsChange,
      nullable: true,
      description:
        'A settings change that waits for approval because it makes approvals less strict; null ' +
        'when there is none.',
      resolve: (query, _settings, _args, ctx) =>
        ctx.database.prisma.settingsChange.findFirst({
          ...query,
          where: { ...mine(ctx), approval: 'pending' },
        }),
    }),
    ipWhitelist: t.exposeStringList('ipWhitelist', {
      description: 'IP addresses and CIDR ranges that may use the account. An empty list allows all.',
    }),
    locale: t.expose('locale', {
      type: Locale,
      description: "The language of the service's e-mails to the merchant.",
    }),
    timeZone: t.exposeString('timeZone', {
      description: 'The time zone in which the days of `paymentStats` begin: `Africa/Bamako`.',
    }),
  }),
})

builder.queryField('settings', (t) =>
  t.prismaField({
    type: Settings,
    nullable: true,
    scope: ['settings'],
    description: 'The settings of the merchant account.',
    resolve: (query, _root, _args, ctx) =>
      ctx.database.prisma.merchant.findFirst({ ...query, where: { id: mine(ctx).merchantId } }),
  }),
)

const UpdateSettingsInput = inputOf('UpdateSettingsInput', updateSettingsInput, {
  description: changeWords('the settings', 'PUT /settings', 'every null'),
  fields: {
    businessName: `The name of the business, 1 to ${limits.merchantNameLengthMax} characters.`,
    notificationEmail: 'The e-mail address for messages about the account. Null or an empty text removes it.',
    businessPhone:
      'The telephone number that payers read on the public pages: a number of Mali, or with + and the ' +
      'code of the country. Null or an empty text removes it.',
    businessAddress:
      `The address that payers read on the public pages, at most ${limits.merchantAddressLengthMax} ` +
      'characters. Null or an empty text removes it.',
    approvalThreshold: 'The amount in whole XOF from which approvals are required; 0 for every amount.',
    approvalsRequired: `Number of people who must approve a request, 1 to ${approvalsRequiredMax}.`,
    approvalsCoverDeposits:
      'True to require approvals for deposits and refunds too. It is false on a new account.',
    ipWhitelist:
      'At most 50 IPv4 or IPv6 addresses and CIDR ranges that may use the account; your own ' +
      'must be among them. An empty list allows all. It applies within a second.',
    locale: "The language of the service's e-mails to the merchant.",
    timeZone: 'The IANA name of the time zone in which the days of `paymentStats` begin.',
    payoutsRequireApproval:
      'True to require approvals for payouts and batches of `approvalThreshold` or more.',
  },
})

builder.mutationField('updateSettings', (t) =>
  t.prismaField({
    type: Settings,
    nullable: true,
    scope: ['settings'],
    description:
      'Changes the given settings. A change that makes active approvals less strict waits as ' +
      '`pendingChange` until as many members approve it as they require; an API key cannot ' +
      'request it.',
    errors: refusals('INVALID_INPUT', 'FORBIDDEN', 'STATE_CONFLICT'),
    args: {
      input: t.arg({ type: UpdateSettingsInput, description: 'The settings to change.', required: true }),
    },
    resolve: async (query, _root, { input }, ctx) => {
      await updateSettings(ctx, input)
      return ctx.database.prisma.merchant.findFirst({ ...query, where: { id: mine(ctx).merchantId } })
    },
  }),
)
