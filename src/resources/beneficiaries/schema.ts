import { mine } from '../../identity/callers/actor.ts'
import { builder } from '../../graphql/builder.ts'
import { changeWords, inputOf } from '../../graphql/input.ts'
import { PayoutMethod, wordEnum } from '../../graphql/enums.ts'
import { refusals } from '../../graphql/errors.ts'
import { connectionType, newestFirst, offsetArg } from '../../graphql/connection.ts'
import { type beneficiaryCategories, createBeneficiary, createBeneficiaryInput } from './create.ts'
import { beneficiariesWhere, beneficiaryFilterInput } from './list.ts'
import { updateBeneficiary, updateBeneficiaryInput } from './update.ts'
import { readSmallId } from '../../shared/ids.ts'
import { limits } from '../../shared/limits.ts'

const BeneficiaryCategory = wordEnum<(typeof beneficiaryCategories)[number]>(
  'BeneficiaryCategory',
  {
    customer: 'A customer of the merchant.',
    employee: 'An employee of the merchant.',
    partner: 'A business partner of the merchant.',
    supplier: 'A supplier of the merchant.',
  },
  'The relation of a beneficiary to the merchant.',
)

const payoutMethodWords =
  'The operator that pays the beneficiary, or `BankTransfer`, by which payouts are not possible yet.'

const beneficiaryId = (id: string) => readSmallId('Beneficiary', id)

const Beneficiary = builder.prismaNode('Beneficiary', {
  id: { field: 'id' },
  findUnique: (id, ctx) => ({ id_merchantId: { ...mine(ctx), id: beneficiaryId(id) } }),
  nullable: true,
  scope: ['beneficiaries'],
  description: 'A saved payee for payouts.',
  fields: (t) => ({
    databaseId: t.expose('id', { type: 'SafeInt', description: 'The id of the beneficiary in REST.' }),
    name: t.exposeString('name', {
      description: `The name of the payee, 1 to ${limits.beneficiaryNameLengthMax} characters.`,
    }),
    account: t.exposeString('account', {
      description:
        'The phone number in E.164 format, +22370000000. For BankTransfer, the account as the ' +
        'merchant wrote it.',
    }),
    paymentMethod: t.expose('paymentMethod', {
      type: PayoutMethod,
      description: payoutMethodWords,
    }),
    category: t.expose('category', {
      type: BeneficiaryCategory,
      description: 'The relation of the payee to the merchant.',
    }),
    isActive: t.exposeBoolean('isActive', {
      description: 'False when the beneficiary is kept but cannot be paid.',
    }),
    createdAt: t.expose('createdAt', {
      type: 'DateTime',
      description: 'The moment when the beneficiary was created.',
    }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime', description: 'The moment of the last change.' }),
  }),
})

const BeneficiaryFilter = inputOf('BeneficiaryFilter', beneficiaryFilterInput, {
  description: 'Selects beneficiaries of a list. A beneficiary must match all fields that are given.',
  fields: {
    activeOnly: 'True to leave out beneficiaries that are not active.',
    category: 'Only beneficiaries of one of these categories.',
    createdFrom: 'Only beneficiaries created at or after this moment.',
    createdTo: 'Only beneficiaries created at or before this moment, or on this day.',
    paymentMethod: 'Only beneficiaries with one of these payment methods.',
  },
})

const Beneficiaries = connectionType(Beneficiary, 'Beneficiary', 'A page of beneficiaries.')

builder.queryFields((t) => ({
  beneficiary: t.prismaField({
    type: Beneficiary,
    nullable: true,
    scope: ['beneficiaries'],
    description: 'One beneficiary; null when it does not exist.',
    args: {
      id: t.arg.id({ required: true, description: 'The beneficiary: its global id, or its id in REST.' }),
    },
    resolve: (query, _root, { id }, ctx) =>
      ctx.database.prisma.beneficiary.findFirst({
        ...query,
        where: { id: beneficiaryId(id), ...mine(ctx) },
      }),
  }),
  beneficiaries: t.field({
    type: Beneficiaries,
    scope: ['beneficiaries'],
    description: 'The beneficiaries of the merchant, newest first.',
    args: {
      ...t.arg.connectionArgs(),
      filter: t.arg({
        type: BeneficiaryFilter,
        description: 'Conditions that the beneficiaries must match.',
      }),
      offset: t.arg.int(offsetArg),
    },
    resolve: (_root, { filter, ...args }, ctx, info) =>
      newestFirst(ctx, info, {
        type: 'Beneficiary',
        args,
        table: ctx.database.prisma.beneficiary,
        where: beneficiariesWhere(ctx, filter),
        hasSmallIds: true,
      }),
  }),
}))

const accountWords =
  'A mobile number in Mali, for example +223 70 00 00 00. For BankTransfer, 5 to 34 characters.'
const CreateBeneficiaryInput = inputOf('CreateBeneficiaryInput', createBeneficiaryInput, {
  description: 'A new beneficiary. Same as POST /beneficiaries in REST.',
  fields: {
    name: `The name of the payee, 1 to ${limits.beneficiaryNameLengthMax} characters.`,
    account: accountWords,
    category: 'The relation of the payee to the merchant.',
    paymentMethod: payoutMethodWords,
  },
})

const UpdateBeneficiaryInput = inputOf('UpdateBeneficiaryInput', updateBeneficiaryInput, {
  description: changeWords('a beneficiary', 'PUT /beneficiaries/{id}'),
  fields: {
    name: `The name of the payee, 1 to ${limits.beneficiaryNameLengthMax} characters.`,
    account: accountWords,
    isActive: 'False to keep the beneficiary but refuse payouts to it.',
    category: 'The relation of the payee to the merchant.',
    paymentMethod: payoutMethodWords,
  },
})

builder.mutationFields((t) => ({
  createBeneficiary: t.prismaField({
    type: Beneficiary,
    nullable: true,
    scope: ['beneficiaries'],
    description: 'Saves a payee. Two beneficiaries may have the same account.',
    errors: refusals('INVALID_INPUT'),
    args: {
      input: t.arg({
        type: CreateBeneficiaryInput,
        description: 'The payee and its account.',
        required: true,
      }),
    },
    resolve: async (query, _root, { input }, ctx) => {
      const { id } = await createBeneficiary(ctx, input)
      return ctx.database.prisma.beneficiary.findFirst({ ...query, where: { id, ...mine(ctx) } })
    },
  }),
  updateBeneficiary: t.prismaField({
    type: Beneficiary,
    nullable: true,
    scope: ['beneficiaries'],
    description: 'Changes the given fields of a beneficiary. Existing payouts keep their payee.',
    errors: refusals('INVALID_INPUT', 'NOT_FOUND'),
    args: {
      id: t.arg.id({ required: true, description: 'The beneficiary: its global id, or its id in REST.' }),
      input: t.arg({ type: UpdateBeneficiaryInput, description: 'The fields to change.', required: true }),
    },
    resolve: async (query, _root, args, ctx) => {
      const { id } = await updateBeneficiary(ctx, beneficiaryId(args.id), args.input)
      return ctx.database.prisma.beneficiary.findFirst({ ...query, where: { id, ...mine(ctx) } })
    },
  }),
}))
