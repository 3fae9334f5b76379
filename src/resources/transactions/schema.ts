import { mine } from '../../identity/callers/actor.ts'
import type { LogEvent, TransactionEventData } from '../../events/catalogue.ts'
import { builder } from '../../graphql/builder.ts'
import { inputOf, replacedBy } from '../../graphql/input.ts'
import { Currency, PaymentMethod, wordEnum } from '../../graphql/enums.ts'
import { Failure, FailureReasonEnum } from '../../graphql/failure.ts'
import { failureOf, failureReasons } from '../../operators/failure-reasons.ts'
import { afterWords, followChanges, LogChange, statusWords } from '../../graphql/log-changes.ts'
import { connectionType, offsetArg } from '../../graphql/connection.ts'
import { orderArg, orderedList } from '../../graphql/ordered-list.ts'
import { searchOf, searchWords } from '../../shared/filter.ts'
import { readId } from '../../shared/ids.ts'
import { currency } from '../../shared/money.ts'
import { checkPayment, paymentState, paymentWords } from './check.ts'
import {
  countTransactions,
  findPage,
  sumTransactions,
  transactionsWhere,
  transactionTable,
  type transactionTypes,
  transactionFilterInput,
} from './list.ts'
import { receiptUrl } from './receipt.ts'
import { TransactionStatus } from './status-type.ts'
import { invalidInput } from '../../shared/input.ts'

const TransactionType = wordEnum<(typeof transactionTypes)[number]>(
  'TransactionType',
  {
    balance_check: "A question to an operator about the balance of the platform's account.",
    deposit: 'A payment from the merchant to a customer; refunds are deposits too.',
    pay: 'A collection: a payment from a customer to the merchant.',
  },
  'The type of a transaction.',
)
const PaymentState = wordEnum(
  'PaymentState',
  {
    failed: 'The payment was not made.',
    pending: 'The payment is not final yet.',
    success: 'The payment is complete.',
  },
  'The state of a payment, as a payer may know it.',
)
export const Transaction = builder.prismaNode('Transaction', {
  select: { id: true },
  id: { field: 'id' },
  findUnique: (id, ctx) => ({ merchantId_id: { ...mine(ctx), id: readId('Transaction', id) } }),
  nullable: true,
  scope: ['balance'],
  description: 'A transaction: a collection, a deposit, a refund or a balance check.',
  fields: (t) => ({
    databaseId: t.expose('id', { type: 'SafeInt', description: 'The id of the transaction in REST.' }),
    transactionType: t.expose('transactionType', {
      type: TransactionType,
      description: 'The type of the transaction.',
    }),
    paymentMethod: t.expose('paymentMethod', {
      type: PaymentMethod,
      description: 'The operator that handles the payment.',
    }),
    customerPhone: t.exposeString('customerPhone', {
      description: "The customer's phone number in E.164 format, +22370000000; empty for a balance check.",
    }),
    amount: t.expose('amount', { type: 'Amount', description: 'The requested amount, in whole XOF.' }),
    settledAmount: t.expose('settledAmount', {
      type: 'Amount',
      nullable: true,
      description:
        'Amount that was paid, in whole XOF; null until it is paid. It may differ from the ' +
        'requested amount.',
    }),
    currency: t.field({
      type: Currency,
      description: 'The currency of the amounts: always `XOF`.',
      resolve: () => currency,
    }),
    status: t.expose('status', {
      type: TransactionStatus,
      description: 'The present status of the transaction.',
    }),
    reference: t.exposeString('reference', {
      description: 'Your own reference, or the one that the service made; unique per merchant.',
    }),
    paymentUrl: t.exposeString('paymentUrl', {
      nullable: true,
      description: 'The hosted page on which the customer pays; null when there is none.',
    }),
    receiptUrl: t.string({
      nullable: true,
      description:
        'The page on which the customer of a collection sees its state and the receipt. The ' +
        'address cannot be guessed. Null for other transactions.',
      select: { id: true, transactionType: true },
      resolve: ({ id, transactionType }, _args, ctx) =>
        transactionType === 'pay' ? receiptUrl(ctx, id) : null,
    }),
    operatorReference: t.exposeString('operatorReference', {
      nullable: true,
      description: "The operator's transaction number, as on the customer's receipt; null until it is known.",
    }),
    failureReason: t.field({
      type: FailureReasonEnum,
      select: { failureReason: true },
      resolve: ({ failureReason }) => failureOf(failureReason),
      nullable: true,
      description: 'The code of the failure, for example `PAYER_NOT_FOUND`; null when it did not fail.',
    }),
    failure: t.field({
      type: Failure,
      nullable: true,
      description: 'The reason of a failed payment, and the advice what to do; null when it did not fail.',
      select: { failureReason: true },
      resolve: ({ failureReason }) => failureOf(failureReason),
    }),
    late: t.exposeBoolean('late', {
      description:
        'True when the payment arrived after the transaction had failed, expired or been cancelled.',
    }),
    requestData: t.field({
      type: 'JSONObject',
      description: 'The data of the request, as the merchant sent it.',
      select: { requestData: true },
      resolve: ({ requestData }) => requestData as object,
    }),
    responseData: t.field({
      type: 'JSONObject',
      description: "The operator's last answer, as the service understood it.",
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
    settledAt: t.expose('settledAt', {
      type: 'DateTime',
      nullable: true,
      description: 'The moment when the transaction reached a final status; null until then.',
    }),
    expiresAt: t.expose('expiresAt', {
      type: 'DateTime',
      nullable: true,
      description: 'The moment when an unconfirmed collection expires; null when it does not expire.',
    }),
    createdAt: t.expose('createdAt', {
      type: 'DateTime',
      description: 'The moment when the transaction was recorded.',
    }),
  }),
})

const TransactionFilter = inputOf('TransactionFilter', transactionFilterInput, {
  description: 'Selects transactions of a list. A transaction must match all fields that are given.',
  fields: {
    amountMax: 'Only transactions of at most this amount, in whole XOF.',
    amountMin: 'Only transactions of at least this amount, in whole XOF.',
    createdFrom: 'Only transactions created at or after this moment.',
    createdTo: 'Only transactions created at or before this moment, or on this day.',
    customerPhone: "Only transactions with this customer's mobile number, for example +223 70 00 00 00.",
    paymentLink: 'Only payments by this payment link: its global id, or its id in REST.',
    paymentMethod: 'Only transactions at one of these operators.',
    reference: 'Only the transaction with this reference.',
    search: searchWords("The reference, the phone number or the operator's reference"),
    status: 'Only transactions with one of these statuses.',
    transactionType: 'Only transactions of one of these types.',
  },
})

const Transactions = connectionType(
  Transaction,
  'Transaction',
  'A page of transactions.',
  'requested amounts',
)

const TransactionLookup = builder.inputType('TransactionLookup', {
  isOneOf: true,
  description: 'The id or the reference of a transaction.',
  fields: (t) => ({
    id: t.id({ description: 'The transaction: its global id, or its id in REST.' }),
    reference: t.string({ description: 'The reference of the transaction.' }),
  }),
})

builder.queryFields((t) => ({
  transaction: t.prismaField({
    type: Transaction,
    nullable: true,
    scope: ['balance'],
    description: 'One transaction, by its id or its reference; null when it does not exist.',
    args: {
      by: t.arg({ type: TransactionLookup, description: 'The id or the reference of the transaction.' }),
      id: t.arg.id({
        description: 'The transaction: its global id, or its id in REST.',
        deprecationReason: replacedBy('by'),
      }),
      databaseId: t.arg({
        type: 'SafeInt',
        description: 'The id of the transaction in REST, as a number.',
        deprecationReason: replacedBy('by'),
      }),
      reference: t.arg.string({
        description: 'The reference of the transaction.',
        deprecationReason: replacedBy('by'),
      }),
    },
    resolve: (query, _root, { by, databaseId, ...older }, ctx) => {
      if ([by, databaseId, older.id, older.reference].filter((given) => given != null).length !== 1)
        throw invalidInput([{ field: 'by', message: 'must be given, and no other argument beside it' }])
      const { id, reference } = by ?? older
      const rowId = id == null ? databaseId : readId('Transaction', id)
      const where = rowId == null ? transactionsWhere(ctx, { reference }) : { id: rowId, ...mine(ctx) }
      return ctx.database.prisma.transaction.findFirst({ ...query, where })
    },
  }),
  transactions: t.field({
    type: Transactions,
    scope: ['balance'],
    description: 'The transactions of the merchant, by default newest first.',
    args: {
      ...t.arg.connectionArgs(),
      filter: t.arg({ type: TransactionFilter, description: 'Conditions that the transactions must match.' }),
      orderBy: t.arg(orderArg),
      offset: t.arg.int(offsetArg),
    },
    resolve: (_root, { filter, orderBy, ...args }, ctx, info) =>
      orderedList(ctx, info, {
        type: 'Transaction',
        args,
        table: ctx.database.prisma.transaction,
        where: transactionsWhere(ctx, filter),
        from: transactionTable,
        amountField: 'amount',
        search: searchOf(filter?.search),
        orderBy,
        count: () => countTransactions(ctx, filter),
        amount: () => sumTransactions(ctx, filter),
        find: (page) => findPage(ctx, filter, page),
      }),
  }),
  paymentStatus: t.field({
    type: builder.objectRef<Awaited<ReturnType<typeof checkPayment>>>('PaymentStatus').implement({
      description: 'The state of a payment for its payer. It never contains an amount or a phone number.',
      fields: (status) => ({
        state: status.expose('state', { type: PaymentState, description: 'The state of the payment.' }),
        complete: status.boolean({
          resolve: ({ state }) => state === 'success',
          description: 'True when the state is SUCCESS.',
        }),
        partial: status.boolean({
          resolve: ({ isPartial }) => isPartial,
          description: 'True when the state is SUCCESS and less was paid than requested.',
        }),
        message: status.string({
          description:
            'An explanation for the payer: in French when the request prefers French, otherwise in ' +
            'English.',
          resolve: ({ state, isPartial }, _args, ctx) =>
            paymentWords[ctx.language][isPartial ? 'partial' : state],
        }),
      }),
    }),
    nullable: true,
    scope: 'public',
    description:
      'The state of a payment, for its payer. The service asks the operator, and settles the ' +
      'payment when the result is final. The reference is the only credential.',
    args: {
      reference: t.arg.string({ description: 'The reference of the payment.', required: true }),
      merchantId: t.arg.int({
        description: 'The id of the merchant. Required only when several merchants use the same reference.',
      }),
    },
    resolve: (_root, { reference, merchantId }, ctx) => checkPayment(ctx, reference, merchantId ?? null),
  }),
}))

const TransactionChange = builder.objectRef<LogEvent<TransactionEventData>>('TransactionChange').implement({
  description:
    'A change of a transaction. The values are those right after the change; only `transaction` has its ' +
    'present state.',
  interfaces: [LogChange],
  scope: ['balance'],
  fields: (t) => ({
    status: t.field({
      type: TransactionStatus,
      description: 'The status after the change.',
      resolve: ({ data }) => data.status as never,
    }),
    previousStatus: t.field({
      type: TransactionStatus,
      nullable: true,
      description: 'The status before the change; null when the transaction was created.',
      resolve: ({ data }) => data.previous_status as never,
    }),
    reference: t.string({
      description: 'The reference of the transaction.',
      resolve: ({ data }) => data.reference,
    }),
    amount: t.field({
      type: 'Amount',
      description: 'The requested amount, in whole XOF.',
      resolve: ({ data }) => BigInt(data.amount),
    }),
    paymentMethod: t.field({
      type: PaymentMethod,
      description: 'The operator that handles the payment.',
      resolve: ({ data }) => data.payment_method as never,
    }),
    late: t.boolean({
      description:
        'True when the payment arrived after the transaction had failed, expired or been cancelled.',
      resolve: ({ data }) => data.late === true,
    }),
    failureReason: t.field({
      type: FailureReasonEnum,
      nullable: true,
      description: 'The code of the failure; null when it did not fail.',
      resolve: ({ data }) => failureOf(data.failure_reason ?? null),
    }),
    transaction: t.prismaField({
      type: Transaction,
      nullable: true,
      description: 'The present state of the transaction.',
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
      'Changes of all transactions, or of one, in order. Pass `after` to resume: no change is lost or ' +
      'repeated.',
    args: {
      id: t.arg.id({
        description: 'The transaction: its global id, or its id in REST. Default: all transactions.',
      }),
      reference: t.arg.string({
        description:
          'The reference of the transaction, instead of `id`. It may be one that you use only afterwards.',
      }),
      status: t.arg({ type: [TransactionStatus], description: statusWords }),
      after: t.arg.string({ description: afterWords }),
    },
    subscribe: (_root, args, ctx) => followChanges(ctx, 'Transaction', args),
    resolve: (event) => event as LogEvent<TransactionEventData>,
  }),
)

/** Explains the failure of a transaction with the field names of REST; empty where it did not fail. */
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
