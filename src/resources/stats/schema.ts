import { builder } from '../../graphql/builder.ts'
import { PaymentMethod, wordEnum } from '../../graphql/enums.ts'
import { FailureReasonEnum } from '../../graphql/failure.ts'
import { selects } from '../../graphql/selection.ts'
import { TransactionStatus } from '../transactions/status-type.ts'
import { PaymentFiguresType, PaymentSummary } from './figures-schema.ts'
import type { paymentKinds, statsPeriods, statsProperties } from './question.ts'
import { type PaymentGroup, type PaymentStats, readPaymentStats, type StatsBucket } from './read.ts'

const Kind = wordEnum<(typeof paymentKinds)[number]>(
  'PaymentKind',
  {
    pay: 'A collection from a customer.',
    deposit: 'A deposit to a customer, refunds included.',
    payout: 'A payout, counted from its creation on.',
    recipient: 'A recipient of a batch.',
  },
  'A kind of payment in `paymentStats`.',
)

const Period = wordEnum<keyof typeof statsPeriods>(
  'StatsPeriod',
  {
    hour: 'Hours, of at most 400 days.',
    day: 'Days, from midnight in the time zone.',
    week: 'Weeks, from Monday.',
    month: 'Calendar months.',
  },
  'The length of the periods of `paymentStats`.',
)

const Property = wordEnum<(typeof statsProperties)[number]>(
  'StatsProperty',
  {
    operator: 'By operator.',
    status: 'By status.',
    type: 'By kind of payment.',
    failure: 'By the reason of the failure.',
  },
  'A property by which `paymentStats` groups the payments of a period.',
)

const Group = builder.objectRef<PaymentGroup>('PaymentStatsGroup').implement({
  description: 'The payments of a period that share the properties of `by`.',
  interfaces: [PaymentFiguresType],
  fields: (t) => ({
    type: t.expose('type', {
      type: Kind,
      nullable: true,
      description: 'The kind of the payments; null when `by` has no TYPE.',
    }),
    paymentMethod: t.expose('paymentMethod', {
      type: PaymentMethod,
      nullable: true,
      description: 'The operator; null when `by` has no OPERATOR.',
    }),
    status: t.expose('status', {
      type: TransactionStatus,
      nullable: true,
      description: 'The status, SUCCESS for completed payouts; null when `by` has no STATUS.',
    }),
    failure: t.expose('failure', {
      type: FailureReasonEnum,
      nullable: true,
      description: 'The reason of the failure; null for other payments, and when `by` has no FAILURE.',
    }),
  }),
})

const Bucket = builder.objectRef<StatsBucket>('PaymentStatsBucket').implement({
  description:
    'The payments that were created in one period. A recipient counts in that of its first sending.',
  interfaces: [PaymentFiguresType],
  fields: (t) => ({
    start: t.expose('start', { type: 'DateTime', description: 'The first moment of the period.' }),
    end: t.expose('end', { type: 'DateTime', description: 'The first moment of the next period.' }),
    groups: t.expose('groups', {
      type: [Group],
      description: 'The groups of the payments by the properties of `by`, the largest first.',
    }),
  }),
})

builder.queryField('paymentStats', (t) =>
  t.field({
    type: builder.objectRef<PaymentStats>('PaymentStats').implement({
      description: 'Numbers about payments, by period.',
      fields: (stats) => ({
        timeZone: stats.exposeString('timeZone', {
          description: 'The time zone in which the periods begin.',
        }),
        total: stats.expose('total', {
          type: PaymentSummary,
          description: 'The numbers of all periods together.',
        }),
        buckets: stats.expose('buckets', {
          type: [Bucket],
          description: 'Every period from the one of `from` to the last one before `to`, also empty ones.',
        }),
      }),
    }),
    nullable: true,
    scope: ['balance'],
    description:
      'Counts, amounts, success rates and times to settle of payments, for charts. They are exact at every ' +
      'moment. Periods are never cut: the first one holds `from`. A date in `from` or `to` is a day of the ' +
      'time zone. All questions of an operation have at most 10,000 periods, each counted once more for ' +
      'each property of `by`.',
    args: {
      from: t.arg({ type: 'DateTime', required: true, description: 'A moment of the first period.' }),
      to: t.arg({
        type: 'DateTime',
        description: 'The end, which is left out; of a date, its whole day counts. Default: now.',
      }),
      groupBy: t.arg({
        type: Period,
        required: true,
        defaultValue: 'day',
        description: 'The length of the periods.',
      }),
      by: t.arg({
        type: [Property],
        required: true,
        defaultValue: [],
        description: 'The properties by which `groups` divides each period.',
      }),
      type: t.arg({ type: [Kind], description: 'Only payments of these kinds.' }),
      paymentMethod: t.arg({ type: [PaymentMethod], description: 'Only payments by these operators.' }),
      timeZone: t.arg.string({
        description:
          'The IANA name of a time zone that differs from UTC by whole hours. Default: that of the settings.',
      }),
    },
    resolve: (_root, args, ctx, info) => readPaymentStats(ctx, args, selects(info, ['medianMs', 'p95Ms'])),
  }),
)
