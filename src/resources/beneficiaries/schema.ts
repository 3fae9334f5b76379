import { mine } from '../../identity/actor.ts'
import { builder } from '../../graphql/builder.ts'
import { inputOf } from '../../graphql/input.ts'
import { PayoutMethod, wordEnum } from '../../graphql/enums.ts'
import { refusals } from '../../graphql/errors.ts'
import { countedConnectionType, newestFirst } from '../../graphql/connection.ts'
import { beneficiaryCategories, createBeneficiary, createBeneficiaryInput } from './create.ts'
import { beneficiariesWhere, beneficiaryFilterInput } from './list.ts'
import { updateBeneficiary, updateBeneficiaryInput } from './update.ts'
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
    databaseId: t.expose('id', { type: 'SafeInt', description: 'Its id in REST.' }),
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

const BeneficiaryFilter = inputOf('BeneficiaryFilter', beneficiaryFilterInput, {
  description: 'Which beneficiaries a list shows; what is left out does not matter.',
  fields: {
    activeOnly: 'Leaves out those who are not active.',
  },
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
const CreateBeneficiaryInput = inputOf('CreateBeneficiaryInput', createBeneficiaryInput, {
  description: 'Somebody to be paid (specification: POST /beneficiaries).',
  fields: {
    name: '1 to 200 characters.',
    account: accountWords,
    category: 'CUSTOMER where left out.',
  },
})

const UpdateBeneficiaryInput = inputOf('UpdateBeneficiaryInput', updateBeneficiaryInput, {
  description: 'What changes of a beneficiary; what is left out stays (specification: PUT /beneficiaries).',
  fields: {
    name: '1 to 200 characters.',
    account: accountWords,
    isActive: 'False keeps it, and lets nobody pay it.',
  },
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
