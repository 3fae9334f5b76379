import { mine } from '../../identity/callers/actor.ts'
import { builder } from '../../graphql/builder.ts'
import { inputOf } from '../../graphql/input.ts'
import { Currency, PaymentMethod, wordEnum } from '../../graphql/enums.ts'
import { refusals, refusalType } from '../../graphql/errors.ts'
import { FailureReasonEnum } from '../../graphql/failure.ts'
import { failureOf } from '../../operators/failure-reasons.ts'
import { globalId } from '../../shared/ids.ts'
import { currency, grouped } from '../../shared/money.ts'
import { collect, collectInput } from './collect.ts'
import type { Initiation } from './initiation.ts'
import { Transaction } from './schema.ts'
import { TransactionStatus } from './status-type.ts'
import { limits } from '../../shared/limits.ts'
import { referenceLengthMax } from '../../shared/input.ts'

const InitiationStatus = wordEnum(
  'InitiationStatus',
  {
    cancelled: 'The payment was cancelled before it was complete.',
    expired: `The customer did not confirm within ${limits.collectionLifetimeMs / 3_600_000} hours.`,
    failed: 'The operator refused the payment, or it could not be completed.',
    pending: 'The customer was asked and has not confirmed yet.',
    pending_approval: 'Members of the team must approve the payment first.',
    processing: 'The payment is at the operator, and its result is not known yet.',
    reversed: 'The payment was made and later given back.',
    success: 'The payment is complete.',
  },
  'The status of a payment that was just requested.',
)

/** A payment, in or out, that was just requested. */
export const PaymentInitiation = builder.objectRef<Initiation>('PaymentInitiation').implement({
  description: 'A payment that was just requested.',
  fields: (t) => ({
    id: t.id({
      description: 'The global id of the transaction that records the payment: `transaction(id:)` reads it.',
      resolve: ({ transactionId }) => globalId('Transaction', transactionId),
    }),
    databaseId: t.field({
      type: 'SafeInt',
      resolve: ({ transactionId }) => transactionId,
      description: 'The REST id of the transaction.',
    }),
    reference: t.exposeString('reference', {
      description: 'Your own reference, or the one that the service made.',
    }),
    amount: t.expose('amount', { type: 'Amount', description: 'The requested amount, in whole XOF.' }),
    currency: t.field({
      type: Currency,
      description: 'The currency of the amount: always `XOF`.',
      resolve: () => currency,
    }),
    paymentMethod: t.expose('paymentMethod', {
      type: PaymentMethod,
      description: 'The operator that handles the payment.',
    }),
    status: t.expose('status', {
      type: InitiationStatus,
      description: 'The status of the payment when the answer was sent.',
    }),
    paymentUrl: t.exposeString('paymentUrl', {
      nullable: true,
      description:
        'The hosted page on which the customer pays; null when the operator asks by a prompt on ' +
        'the phone.',
    }),
    failureReason: t.field({
      type: FailureReasonEnum,
      resolve: ({ failureReason }) => failureOf(failureReason),
      nullable: true,
      description: 'The code of the failure, for example `PAYER_NOT_FOUND`; null when it did not fail.',
    }),
    initiatedAt: t.expose('initiatedAt', {
      type: 'DateTime',
      description: 'The moment when the payment was recorded.',
    }),
    transaction: t.prismaField({
      type: Transaction,
      nullable: true,
      description: 'The transaction that records the payment.',
      resolve: (query, { transactionId }, _args, ctx) =>
        ctx.database.prisma.transaction.findFirst({ ...query, where: { id: transactionId, ...mine(ctx) } }),
    }),
  }),
})

builder.objectField(refusalType('PAYMENT_REFUSED'), 'initiation', (t) =>
  t.field({
    type: PaymentInitiation,
    description: 'The payment, which is recorded as failed.',
    resolve: (error) => error.detail['initiation'] as Initiation,
  }),
)

const ExistingTransaction = builder
  .objectRef<{ id: bigint; status: string }>('ExistingTransaction')
  .implement({
    description: 'The transaction that already uses the requested reference.',
    fields: (t) => ({
      id: t.id({
        description: 'The global id of the transaction.',
        resolve: ({ id }) => globalId('Transaction', id),
      }),
      databaseId: t.field({
        type: 'SafeInt',
        resolve: ({ id }) => id,
        description: 'The id of the transaction in REST.',
      }),
      status: t.field({
        type: TransactionStatus,
        description: 'The present status of the transaction.',
        resolve: ({ status }) => status as never,
      }),
    }),
  })

builder.objectField(refusalType('DUPLICATE_REFERENCE'), 'existingTransaction', (t) =>
  t.field({
    type: ExistingTransaction,
    nullable: true,
    description: 'The transaction that already uses the reference; null when it cannot be shown.',
    resolve: (error) => error.detail.existingTransaction ?? null,
  }),
)

const CollectPaymentInput = inputOf('CollectPaymentInput', collectInput, {
  description: 'A collection: a payment request to a customer. Same as POST /pay in REST.',
  fields: {
    amount:
      `The amount in whole XOF, ${grouped(limits.collectAmountMinXof)} to ` +
      `${grouped(limits.amountMaxXof)}.`,
    customerPhone:
      "The customer's mobile number in Mali, for example +223 70 00 00 00, 70000000 or 00223 " +
      '70 00 00 00.',
    currency: 'The currency: only `XOF`.',
    reference:
      `Your own reference, 1 to ${referenceLengthMax} characters, unique per merchant. A repeated request ` +
      'with the same reference never pays twice. Default: the service makes one.',
    returnUrl: 'The address to which the hosted payment page sends the customer after payment.',
    cancelUrl: 'The address to which the hosted payment page sends the customer after cancelling.',
    customerEmail: 'The e-mail address of the customer.',
    description: 'A text about the payment.',
    paymentMethod: 'The operator at which the customer has an account.',
  },
})

builder.mutationField('collectPayment', (t) =>
  t.field({
    type: PaymentInitiation,
    nullable: true,
    scope: ['pay'],
    movesMoney: true,
    description:
      'Asks a customer for a payment, by a prompt on the phone or on a hosted page. The ' +
      'payment is not complete until the customer confirms it.',
    errors: refusals(
      'INVALID_INPUT',
      'LIMIT_EXCEEDED',
      'DUPLICATE_REFERENCE',
      'PAYMENT_REFUSED',
      'OPERATOR_UNAVAILABLE',
      'OVERLOADED',
      'UNAUTHENTICATED',
    ),
    args: {
      input: t.arg({
        type: CollectPaymentInput,
        description: 'The customer, the amount and the operator.',
        required: true,
      }),
    },
    resolve: (_root, { input }, ctx) => collect(ctx, input),
  }),
)
