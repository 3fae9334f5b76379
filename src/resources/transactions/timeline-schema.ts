import { builder } from '../../graphql/builder.ts'
import { EventType, wordEnum } from '../../graphql/enums.ts'
import { FailureReasonEnum } from '../../graphql/failure.ts'
import { failureOf } from '../../operators/failure-reasons.ts'
import { limits } from '../../shared/limits.ts'
import { TransactionStatus } from './status-type.ts'
import { readTimeline, type TimelineEntry, timelineKinds, timelineSources } from './timeline.ts'

const TimelineKind = wordEnum('TimelineKind', timelineKinds, 'The kind of an entry in a timeline.')
const TimelineSource = wordEnum(
  'TimelineSource',
  timelineSources,
  'The party that caused an entry of a timeline.',
)

const Entry = builder.objectRef<TimelineEntry>('TimelineEntry').implement({
  scope: ['balance'],
  description:
    'An entry of a timeline: one fact about a transaction, such as a request, an answer or a change.',
  fields: (t) => ({
    at: t.expose('at', {
      type: 'DateTime',
      description: 'The moment of the entry; of a question or a webhook, the moment when its request began.',
    }),
    kind: t.expose('kind', { type: TimelineKind, description: 'The kind of the entry.' }),
    source: t.expose('source', { type: TimelineSource, description: 'The party that caused the entry.' }),
    status: t.expose('status', {
      type: TransactionStatus,
      nullable: true,
      description: 'The status after STATUS_CHANGED; null for other entries.',
    }),
    failureReason: t.field({
      type: FailureReasonEnum,
      nullable: true,
      description: 'The code of the failure, where the transaction failed by STATUS_CHANGED; otherwise null.',
      resolve: ({ failureReason }) => failureOf(failureReason),
    }),
    statusCode: t.exposeInt('statusCode', {
      nullable: true,
      description:
        'The HTTP status of the answer, for OPERATOR_ANSWERED, OPERATOR_QUESTIONED and WEBHOOK_SENT; null ' +
        'when no complete answer came, and for other entries.',
    }),
    durationMs: t.exposeInt('durationMs', {
      nullable: true,
      description:
        'The time until the answer, or until the service stopped waiting for it, in milliseconds; null ' +
        'for an entry that tells of no answer.',
    }),
    eventType: t.expose('eventType', {
      type: EventType,
      nullable: true,
      description: 'The type of the event that WEBHOOK_SENT sent; null for other entries.',
    }),
    refundId: t.expose('refundId', {
      type: 'SafeInt',
      nullable: true,
      description: 'The REST id of the refund that the entry is about; null for other entries.',
    }),
  }),
})

builder.prismaObjectField('Transaction', 'timeline', (t) =>
  t.field({
    type: [Entry],
    select: { id: true },
    extensions: { lengthMax: limits.timelineEntriesMax },
    description:
      `The timeline of this transaction, oldest entry first, at most ${limits.timelineEntriesMax} entries. ` +
      'When there are more, the oldest questions to the operator are left out first, then the oldest ' +
      'attempts of webhooks, then the oldest other entries. Requests to operators, their callbacks and the ' +
      'attempts of webhooks may be deleted some time after the transaction has ended. WEBHOOK_SENT is ' +
      'shown to tokens with the scope `webhooks` only.',
    resolve: ({ id }, _args, ctx) => readTimeline(ctx, id),
  }),
)
