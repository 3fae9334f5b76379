import { mine } from '../../identity/callers/actor.ts'
import type { BatchEventData, LogEvent } from '../../events/catalogue.ts'
import { changesOf, typesAbout } from '../../events/filter.ts'
import { builder } from '../../graphql/builder.ts'
import { replacedBy } from '../../graphql/input.ts'
import { afterWords, followLog, LogChange } from '../../graphql/log-changes.ts'
import { invalidInput } from '../../shared/input.ts'
import { noSuchBatch } from './create.ts'
import { paceOf } from './pace.ts'
import { Batch, batchId, BatchStatus } from './schema.ts'

type Progress = LogEvent<BatchEventData>

const BatchProgress = builder.objectRef<Progress>('BatchProgress').implement({
  description: 'The progress of a batch at the moment of a change.',
  interfaces: [LogChange],
  scope: ['bulk_pay'],
  fields: (t) => ({
    status: t.field({
      type: BatchStatus,
      description: 'The status after the change.',
      resolve: ({ data }) => data.status as never,
    }),
    previousStatus: t.field({
      type: BatchStatus,
      nullable: true,
      description: 'The status before the change; null when it is not known.',
      resolve: ({ data }) => data.previous_status as never,
    }),
    recipientCount: t.int({
      description: 'Number of recipients in the batch.',
      resolve: ({ data }) => data.recipient_count,
    }),
    pendingCount: t.int({
      description: 'Number of recipients that were not sent yet, at that moment.',
      resolve: ({ data }) => paceOf(data).open - data.processing_count,
    }),
    processingCount: t.int({
      description: 'Number of recipients at an operator, at that moment.',
      resolve: ({ data }) => data.processing_count,
    }),
    succeededCount: t.int({
      description: 'Number of recipients that were paid, at that moment.',
      resolve: ({ data }) => data.succeeded_count,
    }),
    failedCount: t.int({
      description: 'Number of recipients whose payment failed, at that moment.',
      resolve: ({ data }) => data.failed_count,
    }),
    cancelledCount: t.int({
      description: 'Number of recipients that were cancelled, at that moment.',
      resolve: ({ data }) => data.cancelled_count,
    }),
    totalAmount: t.field({
      type: 'Amount',
      description: 'Sum of the amounts of all recipients, in whole XOF.',
      resolve: ({ data }) => BigInt(data.total_amount),
    }),
    paidAmount: t.field({
      type: 'Amount',
      description: 'Amount paid to recipients, in whole XOF, at that moment.',
      resolve: ({ data }) => BigInt(data.paid_amount),
    }),
    unpaidAmount: t.field({
      type: 'Amount',
      description: '`totalAmount` minus `paidAmount`, in whole XOF: not paid yet, failed or cancelled.',
      resolve: ({ data }) => BigInt(data.total_amount - data.paid_amount),
    }),
    percentage: t.float({
      description: 'Share of recipients with a final status, 0 to 100.',
      resolve: ({ data }) => paceOf(data).percentage,
    }),
    rate: t.float({
      nullable: true,
      description:
        'Recipients that reached a final status per second, since the start; null until the ' +
        'first one has.',
      resolve: ({ data, occurredAt }) => paceOf(data, occurredAt).rate,
    }),
    estimatedEnd: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'Estimated end of the batch at the present rate; null when it cannot be estimated.',
      resolve: ({ data, occurredAt }) => paceOf(data, occurredAt).estimatedEnd,
    }),
    batch: t.prismaField({
      type: Batch,
      nullable: true,
      description: 'The present state of the batch.',
      resolve: (query, { data }, _args, ctx) =>
        ctx.database.prisma.batch.findFirst({ ...query, where: { id: data.batch_id, ...mine(ctx) } }),
    }),
  }),
})

builder.subscriptionField('batchProgress', (t) =>
  t.field({
    type: BatchProgress,
    scope: ['bulk_pay'],
    description:
      'Changes of all batches, or of one, in order. Pass `after` to resume: no change is lost ' +
      'or repeated.',
    args: {
      id: t.arg.id({
        description: 'The batch: its global id, or its id in REST. Default: all batches.',
      }),
      batchId: t.arg.id({ description: 'The batch, as `id`.', deprecationReason: replacedBy('id') }),
      after: t.arg.string({ description: afterWords }),
    },
    subscribe: async (_root, { id: given, batchId: old, after }, ctx) => {
      if (given != null && old != null)
        throw invalidInput([{ field: 'batchId', message: 'cannot be given together with `id`' }])
      const named = given ?? old
      if (named == null) return followLog(ctx, after, { filter: { types: typesAbout('batch'), data: {} } })
      const id = batchId(named)
      const known = await ctx.database.prisma.batch.count({ where: { id, ...mine(ctx) } })
      if (known === 0) throw noSuchBatch()
      return followLog(ctx, after, { filter: changesOf('batch', id), subject: `batch:${id}` })
    },
    resolve: (event) => event as Progress,
  }),
)
