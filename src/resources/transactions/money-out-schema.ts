import { builder } from '../../graphql/builder.ts'
import { inputOf } from '../../graphql/input.ts'
import { refusals } from '../../graphql/errors.ts'
import { readId } from '../../shared/ids.ts'
import { limits } from '../../shared/limits.ts'
import { grouped } from '../../shared/money.ts'
import { deposit, depositInput } from './deposit.ts'
import { refundInput, refundTransaction } from './refund.ts'
import { withheldAmount, withheldWords } from '../disbursements/withheld.ts'
import { refundedAmount } from './refunded.ts'
import { PaymentInitiation } from './collect-schema.ts'
import { readInput, referenceLengthMax } from '../../shared/input.ts'

/** The refusals that deposits and refunds have in common. */
const moneyOut = [
  'INVALID_INPUT',
  'LIMIT_EXCEEDED',
  'DUPLICATE_REFERENCE',
  'INSUFFICIENT_BALANCE',
  'PAYMENT_REFUSED',
  'PAYMENTS_OUT_HALTED',
  'OPERATOR_UNAVAILABLE',
  'OVERLOADED',
  'UNAUTHENTICATED',
] as const

const DepositInput = inputOf('DepositInput', depositInput, {
  description: 'A deposit: a payment from the merchant to a customer. Same as POST /deposit in REST.',
  fields: {
    amount:
      `The amount in whole XOF, ${grouped(limits.disburseAmountMinXof)} to ` +
      `${grouped(limits.amountMaxXof)}.`,
    customerPhone: "The customer's mobile number in Mali, for example +223 70 00 00 00.",
    currency: 'The currency: only `XOF`.',
    reference:
      `Your own reference, 1 to ${referenceLengthMax} characters, unique per merchant. A repeated request ` +
      'with the same reference never pays twice. Default: the service makes one.',
    description: 'A text about the payment.',
    paymentMethod: 'The operator at which the customer has an account.',
  },
})

builder.mutationFields((t) => ({
  deposit: t.field({
    type: PaymentInitiation,
    nullable: true,
    scope: ['deposit'],
    movesMoney: true,
    description:
      'Sends money from the available balance to a customer. The answer comes within 20 ' +
      "seconds: paid, or PROCESSING while the money stays reserved until the operator's " +
      'result is known. With the setting `approvalsCoverDeposits`, a large deposit is ' +
      'PENDING_APPROVAL until members approve it.',
    errors: refusals(...moneyOut),
    args: {
      input: t.arg({
        type: DepositInput,
        description: 'The customer, the amount and the operator.',
        required: true,
      }),
    },
    resolve: (_root, { input }, ctx) => deposit(ctx, input),
  }),
  refundTransaction: t.field({
    type: PaymentInitiation,
    nullable: true,
    scope: ['deposit'],
    movesMoney: true,
    description:
      'Refunds a payment to its payer, in full or in part, by a deposit that is linked to the ' +
      'payment. The payment becomes REVERSED when all of it is refunded; a failed refund ' +
      'changes nothing. A large refund may need an approval, as deposits do.',
    errors: refusals(...moneyOut, 'NOT_FOUND', 'NOT_REFUNDABLE', 'REFUND_TOO_LARGE'),
    args: {
      id: t.arg.id({ required: true, description: 'The payment: its global id, or its id in REST.' }),
      amount: t.arg({
        type: 'Amount',
        description:
          'The amount in whole XOF, at least 1,000, or all that is left. Default: all that is left.',
      }),
      reason: t.arg.string({ description: 'A text that is kept with the refund.' }),
      reference: t.arg.string({
        description: 'Your own reference of the refund, unique per merchant. Default: the service makes one.',
      }),
    },
    extensions: { readsAs: (args: { id: string }) => readInput(refundInput, ofCollection(args)) },
    resolve: (_root, args, ctx) => refundTransaction(ctx, ofCollection(args)),
  }),
}))

builder.prismaObjectFields('Transaction', (t) => ({
  refundOf: t.relation('refundOf', {
    nullable: true,
    description: 'The payment that this refund gives back; null when it is no refund.',
  }),
  refunds: t.relation('refunds', {
    description: `The newest ${limits.pageSizeDefault} refunds of this payment, failed ones included.`,
    query: { orderBy: { id: 'desc' }, take: limits.pageSizeDefault },
  }),
  refundedAmount: t.field({
    type: 'Amount',
    description: 'Amount that refunds have given back, in whole XOF.',
    select: { id: true },
    resolve: ({ id }, _args, ctx) => refundedAmount(ctx, id),
  }),
  withheldAmount: t.field({
    type: 'Amount',
    nullable: true,
    description: withheldWords,
    select: { id: true },
    resolve: ({ id }, _args, ctx) => withheldAmount(ctx, 'deposit', id),
  }),
}))

/** Returns the arguments of a refund, with the id of the collection as the database has it. */
function ofCollection<Args extends { id: string }>(args: Args): Omit<Args, 'id'> & { id: bigint } {
  return { ...args, id: readId('Transaction', args.id) }
}
