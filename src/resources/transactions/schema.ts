import { mine } from '../../identity/actor.ts'
import { isTransactionEvent, type LogEvent, type TransactionEventData } from '../../events/catalogue.ts'
import { builder } from '../../graphql/builder.ts'
import { inputOf } from '../../graphql/input.ts'
import { PaymentMethod, stateEnum, wordEnum } from '../../graphql/enums.ts'
import { refusals, refusalType } from '../../graphql/errors.ts'
import { Failure } from '../../graphql/failure.ts'
import { failureOf, failureReasons } from '../../operators/failure-reasons.ts'
import { afterWords, followLog, LogChange } from '../../graphql/log-changes.ts'
import { countedConnectionType, newestFirst } from '../../graphql/connection.ts'
import { readId } from '../../shared/ids.ts'
import { currency } from '../../shared/money.ts'
import { checkPayment, paymentState, paymentWords } from './check.ts'
import { collect, collectInput } from './collect.ts'
import {
  countTransactions,
  findPage,
  transactionsWhere,
  transactionTypes,
  transactionFilterInput,
} from './list.ts'
import type { Initiation } from './initiation.ts'
import { receiptUrl } from './receipt.ts'
import { transactionStates } from './states.ts'
import { invalidInput } from '../../shared/input.ts'

export const TransactionStatus = stateEnum(
  'TransactionStatus',
  transactionStates,
  'Where a transaction stands.',
)
const TransactionType = wordEnum('TransactionType', transactionTypes, 'What a transaction is.')
const PaymentState = wordEnum(
  'PaymentState',
  ['success', 'failed', 'pending'],
  'Whether a payment is complete.',
)
export const Transaction = builder.prismaNode('Transaction', {
  id: { field: 'id' },
  findUnique: (id, ctx) => ({ merchantId_id: { ...mine(ctx), id: readId('Transaction', id) } }),
  nullable: true,
  scope: ['balance'],
  description: 'A payment or a balance check, as recorded.',
  fields: (t) => ({
    databaseId: t.field({
      type: 'SafeInt',
      resolve: ({ id }) => id,
      select: { id: true },
      description: 'Its id in REST.',
    }),
    transactionType: t.expose('transactionType', { type: TransactionType }),
    paymentMethod: t.expose('paymentMethod', { type: PaymentMethod }),
    customerPhone: t.exposeString('customerPhone', { description: 'E.164; empty for a balance check.' }),
    amount: t.expose('amount', { type: 'Amount', description: 'Whole XOF that were asked for.' }),
    settledAmount: t.expose('settledAmount', {
      type: 'Amount',
      nullable: true,
      description: 'Whole XOF that the operator says were paid; this is what was credited.',
    }),
    currency: t.string({ resolve: () => currency }),
    status: t.expose('status', { type: TransactionStatus }),
    reference: t.exposeString('reference', {
      description: "The merchant's own name for it; unique per merchant.",
    }),
    paymentUrl: t.exposeString('paymentUrl', {
      nullable: true,
      description: 'Hosted page where the customer pays.',
    }),
    receiptUrl: t.string({
      nullable: true,
      description:
        'Of a collection: where its customer sees how it stands, and the receipt. Nobody guesses it.',
      select: { id: true, transactionType: true },
      resolve: ({ id, transactionType }, _args, ctx) =>
        transactionType === 'pay' ? receiptUrl(ctx, id) : null,
    }),
    operatorReference: t.exposeString('operatorReference', {
      nullable: true,
      description: "The operator's number for the money, as on the customer's receipt.",
    }),
    failureReason: t.exposeString('failureReason', { nullable: true }),
    failure: t.field({
      type: Failure,
      nullable: true,
      description: 'Why it was not paid, and what can be done.',
      select: { failureReason: true },
      resolve: ({ failureReason }) => failureOf(failureReason),
    }),
    late: t.exposeBoolean('late', { description: 'Paid after it had already ended without payment.' }),
    requestData: t.field({
      type: 'JSONObject',
      select: { requestData: true },
      resolve: ({ requestData }) => requestData as object,
    }),
    responseData: t.field({
      type: 'JSONObject',
      description: "The operator's last answer as it was understood.",
      select: {
        status: true,
        operatorReference: true,
        paymentUrl: true,
        failureReason: true,
        failureMessage: true,
        settledAmount: true,
        settledAt: true,
        late: true,
      },
      resolve: (row) => ({
        operator_reference: row.operatorReference,
        state: paymentState[row.status],
        ...failureWords(row),
        ...(row.paymentUrl && { payment_url: row.paymentUrl }),
        settled_amount: row.settledAmount === null ? null : Number(row.settledAmount),
        settled_at: row.settledAt,
        late: row.late,
      }),
    }),
    settledAt: t.expose('settledAt', { type: 'DateTime', nullable: true }),
    expiresAt: t.expose('expiresAt', { type: 'DateTime', nullable: true }),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
  }),
})

const TransactionFilter = inputOf('TransactionFilter', transactionFilterInput, {
  description: 'Which transactions a list shows; what is left out does not matter.',
})

const Transactions = countedConnectionType(Transaction, 'Transaction', 'A page of transactions.')

builder.queryFields((t) => ({
  transaction: t.prismaField({
    type: Transaction,
    nullable: true,
    scope: ['balance'],
    description: 'One transaction, by its id in REST or by its reference.',
    args: { databaseId: t.arg({ type: 'SafeInt' }), reference: t.arg.string() },
    resolve: (query, _root, { databaseId, reference }, ctx) => {
      if ((databaseId == null) === (reference == null)) {
        throw invalidInput([{ field: 'databaseId', message: 'or reference must be given, one of the two' }])
      }
      const where =
        databaseId == null ? transactionsWhere(ctx, { reference }) : { id: databaseId, ...mine(ctx) }
      return ctx.database.prisma.transaction.findFirst({ ...query, where })
    },
  }),
  transactions: t.field({
    type: Transactions,
    scope: ['balance'],
    description: 'Transactions, newest first.',
    args: {
      ...t.arg.connectionArgs(),
      filter: t.arg({ type: TransactionFilter }),
      offset: t.arg.int({ description: 'Rows to pass over; cursors are faster.' }),
    },
    resolve: (_root, { filter, ...args }, ctx, info) =>
      newestFirst(ctx, info, {
        type: 'Transaction',
        args,
        table: ctx.database.prisma.transaction,
        where: transactionsWhere(ctx, filter),
        count: () => countTransactions(ctx, filter),
        find: (page) => findPage(ctx, filter, page),
      }),
  }),
  paymentStatus: t.field({
    type: builder.objectRef<Awaited<ReturnType<typeof checkPayment>>>('PaymentStatus').implement({
      description: 'What a payer may know of a payment: never an amount or a phone number.',
      fields: (status) => ({
        state: status.expose('state', { type: PaymentState }),
        complete: status.boolean({
          resolve: ({ state }) => state === 'success',
          description: 'True only when paid.',
        }),
        message: status.string({
          description: 'In French where the caller asks for it, else in English.',
          resolve: ({ state }, _args, ctx) => paymentWords[ctx.language][state],
        }),
      }),
    }),
    nullable: true,
    scope: 'public',
    description:
      'Asks the operator about a payment and settles what is final. Its reference is the credential.',
    args: { reference: t.arg.string({ required: true }), merchantId: t.arg.int() },
    resolve: (_root, { reference, merchantId }, ctx) => checkPayment(ctx, reference, merchantId ?? null),
  }),
}))

const InitiationStatus = wordEnum(
  'InitiationStatus',
  [...transactionStates.statuses, 'pending_approval'],
  'Where a payment stands that was just asked for. PENDING_APPROVAL: people have yet to approve it.',
)

/** A payment that was just asked for, in or out. */
export const PaymentInitiation = builder.objectRef<Initiation>('PaymentInitiation').implement({
  description: 'A payment that was just asked for.',
  fields: (t) => ({
    databaseId: t.field({
      type: 'SafeInt',
      resolve: ({ transactionId }) => transactionId,
      description: 'Transaction id.',
    }),
    reference: t.exposeString('reference'),
    amount: t.expose('amount', { type: 'Amount', description: 'Whole XOF.' }),
    currency: t.string({ resolve: () => currency }),
    paymentMethod: t.expose('paymentMethod', { type: PaymentMethod }),
    status: t.expose('status', { type: InitiationStatus }),
    paymentUrl: t.exposeString('paymentUrl', {
      nullable: true,
      description: 'Hosted page where the customer pays.',
    }),
    failureReason: t.exposeString('failureReason', { nullable: true }),
    initiatedAt: t.expose('initiatedAt', { type: 'DateTime' }),
    transaction: t.prismaField({
      type: Transaction,
      nullable: true,
      description: 'The record of it.',
      resolve: (query, { transactionId }, _args, ctx) =>
        ctx.database.prisma.transaction.findFirst({ ...query, where: { id: transactionId, ...mine(ctx) } }),
    }),
  }),
})

builder.objectField(refusalType('PAYMENT_REFUSED'), 'initiation', (t) =>
  t.field({
    type: PaymentInitiation,
    description: 'The payment, recorded as failed.',
    resolve: (error) => error.detail['initiation'] as Initiation,
  }),
)

const ExistingTransaction = builder
  .objectRef<{ id: bigint; status: string }>('ExistingTransaction')
  .implement({
    description: 'The transaction that has this reference already.',
    fields: (t) => ({
      databaseId: t.field({ type: 'SafeInt', resolve: ({ id }) => id, description: 'Its id in REST.' }),
      status: t.field({ type: TransactionStatus, resolve: ({ status }) => status as never }),
    }),
  })

builder.objectField(refusalType('DUPLICATE_REFERENCE'), 'existingTransaction', (t) =>
  t.field({
    type: ExistingTransaction,
    nullable: true,
    resolve: (error) => error.detail.existingTransaction ?? null,
  }),
)

const CollectPaymentInput = inputOf('CollectPaymentInput', collectInput, {
  description: 'A collection (specification: POST /pay).',
  fields: {
    amount: 'Whole XOF, 100 to 1,000,000.',
    customerPhone: 'A mobile number of Mali, in any usual writing.',
    currency: 'XOF.',
    reference: 'Unique per merchant, 1 to 100 characters: the idempotency key. Made where absent.',
    returnUrl: 'Where a hosted page sends the browser after success.',
    cancelUrl: 'Where a hosted page sends the browser after cancelling.',
  },
})

builder.mutationField('collectPayment', (t) =>
  t.field({
    type: PaymentInitiation,
    nullable: true,
    scope: ['pay'],
    movesMoney: true,
    description:
      'Asks a customer for money, by a prompt on the phone or a hosted page. Not paid until confirmed.',
    errors: refusals(
      'INVALID_INPUT',
      'LIMIT_EXCEEDED',
      'DUPLICATE_REFERENCE',
      'PAYMENT_REFUSED',
      'OPERATOR_UNAVAILABLE',
      'OVERLOADED',
      'UNAUTHENTICATED',
    ),
    args: { input: t.arg({ type: CollectPaymentInput, required: true }) },
    resolve: (_root, { input }, ctx) => collect(ctx, input),
  }),
)

const TransactionChange = builder.objectRef<LogEvent<TransactionEventData>>('TransactionChange').implement({
  description: 'A change of a transaction, as it was at that moment.',
  interfaces: [LogChange],
  scope: ['balance'],
  fields: (t) => ({
    status: t.field({ type: TransactionStatus, resolve: ({ data }) => data.status as never }),
    previousStatus: t.field({
      type: TransactionStatus,
      nullable: true,
      resolve: ({ data }) => data.previous_status as never,
    }),
    reference: t.string({ resolve: ({ data }) => data.reference }),
    amount: t.field({ type: 'Amount', resolve: ({ data }) => BigInt(data.amount) }),
    paymentMethod: t.field({ type: PaymentMethod, resolve: ({ data }) => data.payment_method as never }),
    late: t.boolean({ resolve: ({ data }) => data.late === true }),
    failureReason: t.string({ nullable: true, resolve: ({ data }) => data.failure_reason ?? null }),
    transaction: t.prismaField({
      type: Transaction,
      nullable: true,
      description: 'The transaction as it is now.',
      resolve: (query, { data }, _args, ctx) =>
        ctx.database.prisma.transaction.findFirst({
          ...query,
          where: { id: BigInt(data.transaction_id), ...mine(ctx) },
        }),
    }),
  }),
})

builder.subscriptionField('transactionChanged', (t) =>
  t.field({
    type: TransactionChange,
    scope: ['balance'],
    description:
      'Every change of every transaction, in order. It can be resumed: nothing is lost or repeated.',
    args: { after: t.arg.string({ description: afterWords }) },
    subscribe: (_root, { after }, ctx) => followLog(ctx, after, isTransactionEvent),
    resolve: (event) => event as LogEvent<TransactionEventData>,
  }),
)

/** The failure of a transaction in the words of REST; nothing where there was none. */
function failureWords({
  failureReason,
  failureMessage,
}: Record<'failureReason' | 'failureMessage', string | null>): object {
  const known = failureOf(failureReason)
  if (!known) return {}
  const { who, again, messageFr, messageEn } = failureReasons[known]
  const words = { who, again, message_fr: messageFr, message_en: messageEn }
  return { failure: { reason: failureReason, message: failureMessage, ...words } }
}
