import { mine } from '../../identity/actor.ts'
import { isPayoutEvent, type LogEvent, type PayoutEventData } from '../../events/catalogue.ts'
import { builder } from '../../graphql/builder.ts'
import { inputOf } from '../../graphql/input.ts'
import { PayoutMethod, stateEnum } from '../../graphql/enums.ts'
import { refusals, refusalType } from '../../graphql/errors.ts'
import { Failure } from '../../graphql/failure.ts'
import { failureOf } from '../../operators/failure-reasons.ts'
import { afterWords, followLog, LogChange } from '../../graphql/log-changes.ts'
import { countedConnectionType, newestFirst } from '../../graphql/connection.ts'
import { readId } from '../../shared/ids.ts'
import { invalidInput } from '../../shared/input.ts'
import { currency } from '../../shared/money.ts'
import { cancelPayout } from './cancel.ts'
import { createPayout, createPayoutInput } from './create.ts'
import { countPayouts, payoutsWhere, payoutFilterInput } from './list.ts'
import { payoutStates } from './states.ts'

const PayoutStatus = stateEnum('PayoutStatus', payoutStates, 'Where a payout stands.')

export const Payout = builder.prismaNode('Payout', {
  id: { field: 'id' },
  findUnique: (id, ctx) => ({ id_merchantId: { ...mine(ctx), id: readId('Payout', id) } }),
  nullable: true,
  scope: ['payout'],
  description: "A withdrawal of the merchant's balance to a mobile-money number.",
  fields: (t) => ({
    databaseId: t.field({
      type: 'SafeInt',
      resolve: ({ id }) => id,
      select: { id: true },
      description: 'Its id in REST.',
    }),
    amount: t.expose('amount', { type: 'Amount', description: 'Whole XOF that were asked for.' }),
    settledAmount: t.expose('settledAmount', {
      type: 'Amount',
      nullable: true,
      description: 'Whole XOF that left the balance; the operator may pay less than was asked for.',
    }),
    currency: t.string({ resolve: () => currency }),
    paymentMethod: t.expose('paymentMethod', { type: PayoutMethod }),
    destinationPhone: t.exposeString('destinationPhone', { description: 'E.164.' }),
    status: t.expose('status', { type: PayoutStatus }),
    reference: t.exposeString('reference', {
      description: "The merchant's own name for it; unique per merchant among payouts.",
    }),
    scheduledAt: t.expose('scheduledAt', {
      type: 'DateTime',
      nullable: true,
      description: 'The day that it was scheduled for; null where it goes at once.',
    }),
    beneficiary: t.relation('beneficiary', {
      nullable: true,
      description: 'Who was named, as it is now.',
    }),
    beneficiaryId: t.exposeInt('beneficiaryId', {
      nullable: true,
      description: 'Who was named: the id in REST.',
    }),
    beneficiaryName: t.exposeString('beneficiaryName', {
      nullable: true,
      description: 'As it was when the payout was made.',
    }),
    failureReason: t.exposeString('failureReason', { nullable: true }),
    failure: t.field({
      type: Failure,
      nullable: true,
      description: 'Why it was not paid, and what can be done.',
      select: { failureReason: true },
      resolve: ({ failureReason }) => failureOf(failureReason),
    }),
    operatorReference: t.exposeString('operatorReference', {
      nullable: true,
      description: "The operator's number for the money, as on the recipient's receipt.",
    }),
    settledAt: t.expose('settledAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When it ended, whichever way.',
    }),
    reversedAt: t.expose('reversedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When the operator gave it back; the money is available again.',
    }),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
  }),
})

const PayoutFilter = inputOf('PayoutFilter', payoutFilterInput, {
  description: 'Which payouts a list shows; what is left out does not matter.',
})

export const idWords = 'Its global id, or its id in REST.'

const Payouts = countedConnectionType(Payout, 'Payout', 'A page of payouts.')

builder.queryFields((t) => ({
  payout: t.prismaField({
    type: Payout,
    nullable: true,
    scope: ['payout'],
    description: 'One payout, by its id or by its reference.',
    args: { id: t.arg.id({ description: idWords }), reference: t.arg.string() },
    resolve: (query, _root, { id, reference }, ctx) => {
      if ((id == null) === (reference == null)) {
        throw invalidInput([{ field: 'id', message: 'or reference must be given, one of the two' }])
      }
      const where = id == null ? payoutsWhere(ctx, { reference }) : { id: readId('Payout', id), ...mine(ctx) }
      return ctx.database.prisma.payout.findFirst({ ...query, where })
    },
  }),
  payouts: t.field({
    type: Payouts,
    scope: ['payout'],
    description: 'Payouts, newest first.',
    args: {
      ...t.arg.connectionArgs(),
      filter: t.arg({ type: PayoutFilter }),
      offset: t.arg.int({ description: 'Rows to pass over; cursors are faster.' }),
    },
    resolve: (_root, { filter, ...args }, ctx, info) =>
      newestFirst(ctx, info, {
        type: 'Payout',
        args,
        table: ctx.database.prisma.payout,
        where: payoutsWhere(ctx, filter),
        count: () => countPayouts(ctx, filter),
      }),
  }),
}))

const ExistingPayout = builder.objectRef<{ id: bigint; status: string }>('ExistingPayout').implement({
  description: 'The payout that has this reference already.',
  fields: (t) => ({
    databaseId: t.field({ type: 'SafeInt', resolve: ({ id }) => id, description: 'Its id in REST.' }),
    status: t.field({ type: PayoutStatus, resolve: ({ status }) => status as never }),
  }),
})

builder.objectField(refusalType('DUPLICATE_PAYOUT'), 'existingPayout', (t) =>
  t.field({
    type: ExistingPayout,
    nullable: true,
    resolve: (error) => error.detail.existingPayout ?? null,
  }),
)

const CreatePayoutInput = inputOf('CreatePayoutInput', createPayoutInput, {
  description: 'A payout (specification: POST /payouts): to a number, or to a beneficiary.',
  fields: {
    amount: 'Whole XOF, 1,000 to 100,000,000.',
    paymentMethod: 'Required without a beneficiary. BankTransfer is not yet supported.',
    destinationPhone: 'A mobile number of Mali, in any usual writing. Required without a beneficiary.',
    destinationAccount: 'A bank account: not yet supported.',
    beneficiaryId: 'Whom to pay: a global id, or the id in REST.',
    reference: 'Unique per merchant among payouts, 1 to 100 characters. Made where absent.',
    scheduledAt: 'A day to come, at most 366 days ahead; the money is set aside when it is there.',
    currency: 'XOF.',
  },
})

builder.mutationFields((t) => ({
  createPayout: t.prismaField({
    type: Payout,
    nullable: true,
    scope: ['payout'],
    movesMoney: true,
    description:
      "Withdraws part of the balance. The money is set aside at once, a scheduled payout's when due.",
    errors: refusals(
      'INVALID_INPUT',
      'NOT_FOUND',
      'LIMIT_EXCEEDED',
      'DUPLICATE_PAYOUT',
      'INSUFFICIENT_BALANCE',
      'PAYMENTS_OUT_HALTED',
      'OVERLOADED',
      'UNAUTHENTICATED',
    ),
    args: { input: t.arg({ type: CreatePayoutInput, required: true }) },
    resolve: async (query, _root, { input }, ctx) => {
      const { id, isNew } = await createPayout(ctx, input)
      const payout = await ctx.database.prisma.payout.findFirstOrThrow({
        ...query,
        where: { id, ...mine(ctx) },
      })
      // As it was made: it may be on its way by now, and the answer tells what was recorded.
      return isNew ? { ...payout, ...asMade } : payout
    },
  }),
  cancelPayout: t.prismaField({
    type: Payout,
    nullable: true,
    scope: ['payout'],
    description: 'Cancels a payout that has not begun; its money is free again.',
    errors: refusals('NOT_FOUND', 'STATE_CONFLICT'),
    args: { id: t.arg.id({ required: true, description: idWords }) },
    resolve: async (query, _root, args, ctx) => {
      const { id } = await cancelPayout(ctx, readId('Payout', args.id))
      return ctx.database.prisma.payout.findFirstOrThrow({ ...query, where: { id, ...mine(ctx) } })
    },
  }),
}))

const asMade = {
  status: payoutStates.initial,
  failureReason: null,
  operatorReference: null,
  settledAmount: null,
  settledAt: null,
  reversedAt: null,
}

const PayoutChange = builder.objectRef<LogEvent<PayoutEventData>>('PayoutChange').implement({
  description: 'A change of a payout, as it was at that moment.',
  interfaces: [LogChange],
  scope: ['payout'],
  fields: (t) => ({
    status: t.field({ type: PayoutStatus, resolve: ({ data }) => data.status as never }),
    previousStatus: t.field({
      type: PayoutStatus,
      nullable: true,
      resolve: ({ data }) => data.previous_status as never,
    }),
    reference: t.string({ resolve: ({ data }) => data.reference }),
    amount: t.field({ type: 'Amount', resolve: ({ data }) => BigInt(data.amount) }),
    paymentMethod: t.field({ type: PayoutMethod, resolve: ({ data }) => data.payment_method as never }),
    failureReason: t.string({ nullable: true, resolve: ({ data }) => data.failure_reason ?? null }),
    payout: t.prismaField({
      type: Payout,
      nullable: true,
      description: 'The payout as it is now.',
      resolve: (query, { data }, _args, ctx) =>
        ctx.database.prisma.payout.findFirst({
          ...query,
          where: { id: BigInt(data.payout_id), ...mine(ctx) },
        }),
    }),
  }),
})

builder.subscriptionField('payoutChanged', (t) =>
  t.field({
    type: PayoutChange,
    scope: ['payout'],
    description: 'Every change of every payout, in order. It can be resumed: nothing is lost or repeated.',
    args: { after: t.arg.string({ description: afterWords }) },
    subscribe: (_root, { after }, ctx) => followLog(ctx, after, isPayoutEvent),
    resolve: (event) => event as LogEvent<PayoutEventData>,
  }),
)
