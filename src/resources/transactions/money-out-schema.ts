import { builder } from '../../graphql/builder.ts'
import { inputOf } from '../../graphql/input.ts'
import { refusals } from '../../graphql/errors.ts'
import { readId } from '../../shared/ids.ts'
import { limits } from '../../shared/limits.ts'
import { deposit, depositInput } from './deposit.ts'
import { refundTransaction } from './refund.ts'
import { refundedAmount } from './refunded.ts'
import { PaymentInitiation } from './schema.ts'

/** What both may be refused with. */
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
  description: 'Money for a customer (specification: POST /deposit).',
  fields: {
    amount: 'Whole XOF, 1,000 to 1,000,000.',
    customerPhone: 'A mobile number of Mali, in any usual writing.',
    currency: 'XOF.',
    reference: 'Unique per merchant, 1 to 100 characters: the idempotency key. Made where absent.',
  },
})

builder.mutationFields((t) => ({
  deposit: t.field({
    type: PaymentInitiation,
    nullable: true,
    scope: ['deposit'],
    movesMoney: true,
    description:
      'Sends money to a customer, out of the available balance. Answers within 20 seconds: paid, or still ' +
      "PROCESSING; then its money stays set aside until the operator's word is known. Where the settings " +
      'say so (`approvalsCoverDeposits`), a large one is PENDING_APPROVAL: people approve it first.',
    errors: refusals(...moneyOut),
    args: { input: t.arg({ type: DepositInput, required: true }) },
    resolve: (_root, { input }, ctx) => deposit(ctx, input),
  }),
  refundTransaction: t.field({
    type: PaymentInitiation,
    nullable: true,
    scope: ['deposit'],
    movesMoney: true,
    description:
      'Gives a payment back to its payer, all of it or a part: a deposit that is linked to it. One that ' +
      'completes what was paid makes the payment REVERSED; one that fails changes nothing. A large one may ' +
      'wait for approval, as deposits do.',
    errors: refusals(...moneyOut, 'NOT_FOUND', 'NOT_REFUNDABLE', 'REFUND_TOO_LARGE'),
    args: {
      id: t.arg.id({ required: true, description: 'Of the payment: global, or as in REST.' }),
      amount: t.arg({
        type: 'Amount',
        description: 'Whole XOF, at least 1,000 or all that is left; left out, all that is left.',
      }),
      reason: t.arg.string({ description: 'Kept with the refund.' }),
      reference: t.arg.string({ description: 'Of the refund; unique per merchant. Made where absent.' }),
    },
    resolve: (_root, args, ctx) => refundTransaction(ctx, { ...args, id: readId('Transaction', args.id) }),
  }),
}))

builder.prismaObjectFields('Transaction', (t) => ({
  refundOf: t.relation('refundOf', {
    nullable: true,
    description: 'Of a refund: the payment that it gives back.',
  }),
  refunds: t.relation('refunds', {
    description: `Its newest ${limits.pageSizeDefault} refunds, failed ones too.`,
    query: { orderBy: { id: 'desc' }, take: limits.pageSizeDefault },
  }),
  refundedAmount: t.field({
    type: 'Amount',
    description: 'Whole XOF that refunds have given back.',
    select: { id: true },
    resolve: ({ id }, _args, ctx) => refundedAmount(ctx, id),
  }),
}))
