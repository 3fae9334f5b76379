import { mine } from '../../identity/actor.ts'
import { builder } from '../../graphql/builder.ts'
import { PayoutMethod, wordEnum } from '../../graphql/enums.ts'
import { refusals } from '../../graphql/errors.ts'
import { countedConnectionType, newestFirst } from '../../graphql/connection.ts'
import { beneficiaryCategories, createBeneficiary } from './create.ts'
import { beneficiariesWhere } from './list.ts'
import { updateBeneficiary } from './update.ts'
import { readSmallId } from '../../shared/ids.ts'

const BeneficiaryCategory = wordEnum(
  'BeneficiaryCategory',
  beneficiaryCategories,
  'What a beneficiary is to the merchant.',
)

const beneficiaryId = (id: string) => readSmallId('Beneficiary', id)

const Beneficiary = builder.prismaNode('Beneficiary', {
  id: { field: 'id' },
  findUnique: (id, ctx) => ({ id_merchantId: { ...mine(ctx), id: beneficiaryId(id) } }),
  nullable: true,
  scope: ['beneficiaries'],
  description: 'Somebody whom the merchant pays more than once.',
  fields: (t) => ({
    databaseId: t.exposeInt('id', { description: 'Its id in REST.' }),
    name: t.exposeString('name'),
    account: t.exposeString('account', {
      description: 'The mobile number, in E.164; of a bank, what the merchant wrote.',
    }),
    paymentMethod: t.expose('paymentMethod', { type: PayoutMethod }),
    category: t.expose('category', { type: BeneficiaryCategory }),
    isActive: t.exposeBoolean('isActive', { description: 'Whoever is not is kept, and not paid.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
    updatedAt: t.expose('updatedAt', { type: 'DateTime' }),
  }),
})

const BeneficiaryFilter = builder.inputType('BeneficiaryFilter', {
  description: 'Which beneficiaries a list shows; what is left out does not matter.',
  fields: (t) => ({
    category: t.field({ type: BeneficiaryCategory }),
    paymentMethod: t.field({ type: PayoutMethod }),
    activeOnly: t.boolean({ description: 'Leaves out those who are not active.' }),
  }),
})

const Beneficiaries = countedConnectionType(Beneficiary, 'Beneficiary', 'A page of beneficiaries.')

builder.queryFields((t) => ({
  beneficiary: t.prismaField({
    type: Beneficiary,
    nullable: true,
    scope: ['beneficiaries'],
    description: 'One beneficiary.',
    args: { id: t.arg.id({ required: true, description: 'Its global id, or its id in REST.' }) },
    resolve: (query, _root, { id }, ctx) =>
      ctx.database.prisma.beneficiary.findFirst({
        ...query,
        where: { id: beneficiaryId(id), ...mine(ctx) },
      }),
  }),
  beneficiaries: t.field({
    type: Beneficiaries,
    scope: ['beneficiaries'],
    description: 'Beneficiaries, newest first.',
    args: {
      ...t.arg.connectionArgs(),
      filter: t.arg({ type: BeneficiaryFilter }),
      offset: t.arg.int({ description: 'Rows to pass over; cursors are faster.' }),
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

const accountWords = 'A mobile number of Mali in any usual writing; of a bank, 5 to 34 characters.'
const CreateBeneficiaryInput = builder.inputType('CreateBeneficiaryInput', {
  description: 'Somebody to be paid (specification: POST /beneficiaries).',
  fields: (t) => ({
    name: t.string({ required: true, description: '1 to 200 characters.' }),
    account: t.string({ required: true, description: accountWords }),
    paymentMethod: t.field({ type: PayoutMethod, required: true }),
    category: t.field({ type: BeneficiaryCategory, description: 'CUSTOMER where left out.' }),
  }),
})

const UpdateBeneficiaryInput = builder.inputType('UpdateBeneficiaryInput', {
  description: 'What changes of a beneficiary; what is left out stays (specification: PUT /beneficiaries).',
  fields: (t) => ({
    name: t.string({ description: '1 to 200 characters.' }),
    account: t.string({ description: accountWords }),
    paymentMethod: t.field({ type: PayoutMethod }),
    category: t.field({ type: BeneficiaryCategory }),
    isActive: t.boolean({ description: 'False keeps it, and lets nobody pay it.' }),
  }),
})

builder.mutationFields((t) => ({
  createBeneficiary: t.prismaField({
    type: Beneficiary,
    nullable: true,
    scope: ['beneficiaries'],
    description: 'Saves somebody whom the merchant pays. Two with one account are two.',
    errors: refusals('INVALID_INPUT'),
    args: { input: t.arg({ type: CreateBeneficiaryInput, required: true }) },
    resolve: async (query, _root, { input }, ctx) => {
      const { id } = await createBeneficiary(ctx, input)
      return ctx.database.prisma.beneficiary.findFirst({ ...query, where: { id, ...mine(ctx) } })
    },
  }),
  updateBeneficiary: t.prismaField({
    type: Beneficiary,
    nullable: true,
    scope: ['beneficiaries'],
    description: 'Changes what is given of a beneficiary. Payouts that were made keep what they paid.',
    errors: refusals('INVALID_INPUT', 'NOT_FOUND'),
    args: {
      id: t.arg.id({ required: true, description: 'Its global id, or its id in REST.' }),
      input: t.arg({ type: UpdateBeneficiaryInput, required: true }),
    },
    resolve: async (query, _root, args, ctx) => {
      const { id } = await updateBeneficiary(ctx, beneficiaryId(args.id), args.input)
      return ctx.database.prisma.beneficiary.findFirst({ ...query, where: { id, ...mine(ctx) } })
    },
  }),
}))
