import { builder } from '../../graphql/builder.ts'
import { type PaymentFigures, readBatchStats, readLinkStats } from './figures.ts'

export const PaymentFiguresType = builder.interfaceRef<PaymentFigures>('PaymentFigures').implement({
  description: 'Numbers about a set of payments. Amounts are in whole XOF.',
  fields: (t) => ({
    count: t.expose('count', { type: 'SafeInt', description: 'Number of payments.' }),
    amount: t.expose('amount', { type: 'Amount', description: 'Sum of the requested amounts.' }),
    settledAmount: t.expose('settledAmount', {
      type: 'Amount',
      description: 'Sum of the amounts that the operators confirmed.',
    }),
    successRate: t.float({
      nullable: true,
      description:
        'Successful payments divided by all payments that have ended, 0 to 1; null when none has ended. ' +
        'Expired and cancelled payments have ended; payments that were given back later did not succeed.',
      resolve: ({ succeeded, ended }) => (ended === 0n ? null : Number(succeeded) / Number(ended)),
    }),
    medianMs: t.expose('medianMs', {
      type: 'SafeInt',
      nullable: true,
      description:
        'Half of the successful payments were settled within this time, in milliseconds; null when there ' +
        'is none. It is rounded up to the next of 24 steps per power of ten, so by less than 11 %; a ' +
        'shorter time than 100 ms counts as 100.',
    }),
    p95Ms: t.expose('p95Ms', {
      type: 'SafeInt',
      nullable: true,
      description: '95 of 100 successful payments were settled within this time; as `medianMs`.',
    }),
  }),
})

export const PaymentSummary = builder.objectRef<PaymentFigures>('PaymentSummary').implement({
  description: 'Numbers about all payments of a kind, a link or a batch.',
  interfaces: [PaymentFiguresType],
})

builder.prismaObjectField('PaymentLink', 'stats', (t) =>
  t.field({
    type: PaymentSummary,
    scope: ['balance'],
    select: { id: true },
    description: 'Numbers about all payments by this link, started ones included.',
    resolve: ({ id }, _args, ctx) => readLinkStats(ctx, id),
  }),
)

builder.prismaObjectField('Batch', 'stats', (t) =>
  t.field({
    type: PaymentSummary,
    select: { id: true },
    description: 'Numbers about the payments of this batch, one for each recipient.',
    resolve: ({ id }, _args, ctx) => readBatchStats(ctx, id),
  }),
)
