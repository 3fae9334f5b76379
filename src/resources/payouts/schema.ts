import { mine } from '../../identity/callers/actor.ts'
import type { LogEvent, PayoutEventData } from '../../events/catalogue.ts'
import { builder } from '../../graphql/builder.ts'
import { inputOf, replacedBy } from '../../graphql/input.ts'
import { Currency, PayoutMethod, stateEnum } from '../../graphql/enums.ts'
import { refusals, refusalType } from '../../graphql/errors.ts'
import { Failure, FailureReasonEnum } from '../../graphql/failure.ts'
import { failureOf } from '../../operators/failure-reasons.ts'
import { afterWords, followChanges, LogChange, statusWords } from '../../graphql/log-changes.ts'
import { connectionType, offsetArg } from '../../graphql/connection.ts'
import { orderArg, orderedList } from '../../graphql/ordered-list.ts'
import { searchOf, searchWords } from '../../shared/filter.ts'
import { globalId, readId } from '../../shared/ids.ts'
import { invalidInput } from '../../shared/input.ts'
import { currency } from '../../shared/money.ts'
import { withheldAmount, withheldWords } from '../disbursements/withheld.ts'
import { cancelPayout } from './cancel.ts'
import { createPayout } from './create.ts'
import { CreatePayoutInput } from './input-type.ts'
import { countPayouts, payoutsWhere, payoutFilterInput, payoutTable, sumPayouts } from './list.ts'
import { payoutStates } from './states.ts'

const PayoutStatus = stateEnum('PayoutStatus', payoutStates, 'The status of a payout.', {
  cancelled: 'The payout was cancelled, rejected, or not approved in time.',
  completed: 'The operator paid the payout.',
  failed:
    'The payout was refused by the operator, could not be completed, or was not covered by the ' +
    'balance when it was due.',
  pending: 'The payout waits for its time, for an approval, or to be sent.',
  processing: 'The payout is at the operator, and its result is not known yet.',
})

export const Payout = builder.prismaNode('Payout', {
  id: { field: 'id' },
  findUnique: (id, ctx) => ({ id_merchantId: { ...mine(ctx), id: readId('Payout', id) } }),
  nullable: true,
  scope: ['payout'],
  description: "A payout: money paid out of the merchant's balance to a mobile-money account.",
  fields: (t) => ({
    databaseId: t.field({
      type: 'SafeInt',
      resolve: ({ id }) => id,
      select: { id: true },
      description: 'The id of the payout in REST.',
    }),
    amount: t.expose('amount', { type: 'Amount', description: 'The requested amount, in whole XOF.' }),
    settledAmount: t.expose('settledAmount', {
      type: 'Amount',
      nullable: true,
      description:
        'Amount that was paid, in whole XOF; null until it is paid. An operator may pay less ' +
        'than was requested.',
    }),
    withheldAmount: t.field({
      type: 'Amount',
      nullable: true,
      description: withheldWords,
      select: { id: true },
      resolve: ({ id }, _args, ctx) => withheldAmount(ctx, 'payout', id),
    }),
    currency: t.field({
      type: Currency,
      description: 'The currency of the amounts: always `XOF`.',
      resolve: () => currency,
    }),
    paymentMethod: t.expose('paymentMethod', { type: PayoutMethod, description: 'The operator that pays.' }),
    destinationPhone: t.exposeString('destinationPhone', {
      description: 'The phone number that is paid, in E.164 format: +22370000000.',
    }),
    status: t.expose('status', { type: PayoutStatus, description: 'The present status of the payout.' }),
    reference: t.exposeString('reference', {
      description:
        'Your own reference, or the one that the service made; unique among the payouts of the ' +
        'merchant.',
    }),
    scheduledAt: t.expose('scheduledAt', {
      type: 'DateTime',
      nullable: true,
      description: 'The moment for which the payout is scheduled; null if no time was set.',
    }),
    beneficiary: t.relation('beneficiary', {
      nullable: true,
      description: 'The present state of the beneficiary; null when the payout was made to a phone number.',
    }),
    beneficiaryId: t.exposeInt('beneficiaryId', {
      nullable: true,
      description: 'The REST id of the beneficiary; null when the payout was made to a phone number.',
    }),
    beneficiaryName: t.exposeString('beneficiaryName', {
      nullable: true,
      description: 'The name of the beneficiary when the payout was created; null when there is none.',
    }),
    failureReason: t.field({
      type: FailureReasonEnum,
      select: { failureReason: true },
      resolve: ({ failureReason }) => failureOf(failureReason),
      nullable: true,
      description: 'The code of the failure, for example `PAYEE_NOT_FOUND`; null when it did not fail.',
    }),
    failure: t.field({
      type: Failure,
      nullable: true,
      description: 'The reason of a failed payout, and the advice what to do; null when it did not fail.',
      select: { failureReason: true },
      resolve: ({ failureReason }) => failureOf(failureReason),
    }),
    operatorReference: t.exposeString('operatorReference', {
      nullable: true,
      description: "The operator's transaction number, as on the payee's receipt; null until it is paid.",
    }),
    settledAt: t.expose('settledAt', {
      type: 'DateTime',
      nullable: true,
      description: 'The moment when the payout reached a final status; null until then.',
    }),
    reversedAt: t.expose('reversedAt', {
      type: 'DateTime',
      nullable: true,
      description:
        'The moment when the operator gave the money back, which made it available again; null ' +
        'when it did not.',
    }),
    createdAt: t.expose('createdAt', {
      type: 'DateTime',
      description: 'The moment when the payout was created.',
    }),
  }),
})

const PayoutFilter = inputOf('PayoutFilter', payoutFilterInput, {
  description: 'Selects payouts of a list. A payout must match all fields that are given.',
  fields: {
    amountMax: 'Only payouts of at most this amount, in whole XOF.',
    amountMin: 'Only payouts of at least this amount, in whole XOF.',
    beneficiaryId: 'Only payouts to this beneficiary: its global id, or its id in REST.',
    createdBy: 'Only payouts of this author: `member:7` or `api_key:12`, as in the audit log.',
    createdFrom: 'Only payouts created at or after this moment.',
    createdTo: 'Only payouts created at or before this moment, or on this day.',
    paymentMethod: 'Only payouts by one of these operators.',
    reference: 'Only the payout with this reference.',
    search: searchWords(
      "The reference, the phone number, the name of the beneficiary or the operator's reference",
    ),
    status: 'Only payouts with one of these statuses.',
  },
})

const Payouts = connectionType(Payout, 'Payout', 'A page of payouts.', 'requested amounts')

const PayoutLookup = builder.inputType('PayoutLookup', {
  isOneOf: true,
  description: 'The id or the reference of a payout.',
  fields: (t) => ({
    id: t.id({ description: 'The payout: its global id, or its id in REST.' }),
    reference: t.string({ description: 'The reference of the payout.' }),
  }),
})

builder.queryFields((t) => ({
  payout: t.prismaField({
    type: Payout,
    nullable: true,
    scope: ['payout'],
    description: 'One payout, by its id or its reference; null when it does not exist.',
    args: {
      by: t.arg({ type: PayoutLookup, description: 'The id or the reference of the payout.' }),
      id: t.arg.id({
        description: 'The payout: its global id, or its id in REST.',
        deprecationReason: replacedBy('by'),
      }),
      reference: t.arg.string({
        description: 'The reference of the payout.',
        deprecationReason: replacedBy('by'),
      }),
    },
    resolve: (query, _root, { by, ...older }, ctx) => {
      if ([by, older.id, older.reference].filter((given) => given != null).length !== 1)
        throw invalidInput([{ field: 'by', message: 'must be given, and no other argument beside it' }])
      const { id, reference } = by ?? older
      const where = id == null ? payoutsWhere(ctx, { reference }) : { id: readId('Payout', id), ...mine(ctx) }
      return ctx.database.prisma.payout.findFirst({ ...query, where })
    },
  }),
  payouts: t.field({
    type: Payouts,
    scope: ['payout'],
    description: 'The payouts of the merchant, by default newest first.',
    args: {
      ...t.arg.connectionArgs(),
      filter: t.arg({ type: PayoutFilter, description: 'Conditions that the payouts must match.' }),
      orderBy: t.arg(orderArg),
      offset: t.arg.int(offsetArg),
    },
    resolve: (_root, { filter, orderBy, ...args }, ctx, info) =>
      orderedList(ctx, info, {
        type: 'Payout',
        args,
        table: ctx.database.prisma.payout,
        where: payoutsWhere(ctx, filter),
        from: payoutTable,
        amountField: 'amount',
        search: searchOf(filter?.search),
        orderBy,
        count: () => countPayouts(ctx, filter),
        amount: () => sumPayouts(ctx, filter),
      }),
  }),
}))

const ExistingPayout = builder.objectRef<{ id: bigint; status: string }>('ExistingPayout').implement({
  description: 'The payout that already uses the requested reference.',
  fields: (t) => ({
    id: t.id({
      description: 'The global id of the payout.',
      resolve: ({ id }) => globalId('Payout', id),
    }),
    databaseId: t.field({
      type: 'SafeInt',
      resolve: ({ id }) => id,
      description: 'The id of the payout in REST.',
    }),
    status: t.field({
      type: PayoutStatus,
      description: 'The present status of the payout.',
      resolve: ({ status }) => status as never,
    }),
  }),
})

builder.objectField(refusalType('DUPLICATE_PAYOUT'), 'existingPayout', (t) =>
  t.field({
    type: ExistingPayout,
    nullable: true,
    description: 'The payout that already uses the reference; null when it cannot be shown.',
    resolve: (error) => error.detail.existingPayout ?? null,
  }),
)

builder.mutationFields((t) => ({
  createPayout: t.prismaField({
    type: Payout,
    nullable: true,
    scope: ['payout'],
    movesMoney: true,
    description:
      'Pays a part of the balance out to a mobile-money account. The money is reserved at ' +
      'once, or at the scheduled time.',
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
    args: {
      input: t.arg({ type: CreatePayoutInput, description: 'The payee and the amount.', required: true }),
    },
    resolve: async (query, _root, { input }, ctx) => {
      const { id, isNew } = await createPayout(ctx, input)
      const payout = await ctx.database.prisma.payout.findFirstOrThrow({
        ...query,
        where: { id, ...mine(ctx) },
      })
      // Answer with the payout as it was created: a job may have begun to send it by now.
      return isNew ? { ...payout, ...asMade } : payout
    },
  }),
  cancelPayout: t.prismaField({
    type: Payout,
    nullable: true,
    scope: ['payout'],
    description: 'Cancels a payout that was not sent yet. Its money is available again.',
    errors: refusals('NOT_FOUND', 'STATE_CONFLICT'),
    args: { id: t.arg.id({ required: true, description: 'The payout: its global id, or its id in REST.' }) },
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
  description:
    'A change of a payout. The values are those right after the change; only `payout` has its present state.',
  interfaces: [LogChange],
  scope: ['payout'],
  fields: (t) => ({
    status: t.field({
      type: PayoutStatus,
      description: 'The status after the change.',
      resolve: ({ data }) => data.status as never,
    }),
    previousStatus: t.field({
      type: PayoutStatus,
      nullable: true,
      description: 'The status before the change; null when the payout was created.',
      resolve: ({ data }) => data.previous_status as never,
    }),
    reference: t.string({
      description: 'The reference of the payout.',
      resolve: ({ data }) => data.reference,
    }),
    amount: t.field({
      type: 'Amount',
      description: 'The requested amount, in whole XOF.',
      resolve: ({ data }) => BigInt(data.amount),
    }),
    paymentMethod: t.field({
      type: PayoutMethod,
      description: 'The operator that pays.',
      resolve: ({ data }) => data.payment_method as never,
    }),
    failureReason: t.field({
      type: FailureReasonEnum,
      nullable: true,
      description: 'The code of the failure; null when it did not fail.',
      resolve: ({ data }) => failureOf(data.failure_reason ?? null),
    }),
    payout: t.prismaField({
      type: Payout,
      nullable: true,
      description: 'The present state of the payout.',
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
    description:
      'Changes of all payouts, or of one, in order. Pass `after` to resume: no change is lost or repeated.',
    args: {
      id: t.arg.id({ description: 'The payout: its global id, or its id in REST. Default: all payouts.' }),
      reference: t.arg.string({
        description:
          'The reference of the payout, instead of `id`. It may be one that you use only afterwards.',
      }),
      status: t.arg({ type: [PayoutStatus], description: statusWords }),
      after: t.arg.string({ description: afterWords }),
    },
    subscribe: (_root, args, ctx) => followChanges(ctx, 'Payout', args),
    resolve: (event) => event as LogEvent<PayoutEventData>,
  }),
)
