import { mine } from '../../identity/actor.ts'
import { type BatchEventData, isBatchEvent, type LogEvent } from '../../events/catalogue.ts'
import { builder } from '../../graphql/builder.ts'
import { afterWords, followLog, LogChange } from '../../graphql/log-changes.ts'
import { noSuchBatch } from './create.ts'
import { paceOf } from './pace.ts'
import { Batch, batchId, BatchStatus, idWords } from './schema.ts'

type Progress = LogEvent<BatchEventData>

const BatchProgress = builder.objectRef<Progress>('BatchProgress').implement({
  description: 'How far a batch was, at the moment of a change of it.',
  interfaces: [LogChange],
  scope: ['bulk_pay'],
  fields: (t) => ({
    status: t.field({ type: BatchStatus, resolve: ({ data }) => data.status as never }),
    previousStatus: t.field({
      type: BatchStatus,
      nullable: true,
      resolve: ({ data }) => data.previous_status as never,
    }),
    recipientCount: t.int({ resolve: ({ data }) => data.recipient_count }),
    pendingCount: t.int({
      description: 'Those whose turn had not come.',
      resolve: ({ data }) => paceOf(data).open - data.processing_count,
    }),
    processingCount: t.int({
      description: 'At their operators at that moment.',
      resolve: ({ data }) => data.processing_count,
    }),
    succeededCount: t.int({ resolve: ({ data }) => data.succeeded_count }),
    failedCount: t.int({ resolve: ({ data }) => data.failed_count }),
    cancelledCount: t.int({ resolve: ({ data }) => data.cancelled_count }),
    totalAmount: t.field({
      type: 'Amount',
      description: 'Whole XOF, of all recipients.',
      resolve: ({ data }) => BigInt(data.total_amount),
    }),
    paidAmount: t.field({
      type: 'Amount',
      description: 'Whole XOF that left the balance.',
      resolve: ({ data }) => BigInt(data.paid_amount),
    }),
    unpaidAmount: t.field({
      type: 'Amount',
      description: 'totalAmount less paidAmount: still to come, failed or cancelled.',
      resolve: ({ data }) => BigInt(data.total_amount - data.paid_amount),
    }),
    percentage: t.float({
      description: 'Of its recipients those that ended, whichever way: 0 to 100.',
      resolve: ({ data }) => paceOf(data).percentage,
    }),
    rate: t.float({
      nullable: true,
      description: 'Recipients paid or failed in a second, since it began; null where nobody is yet.',
      resolve: ({ data, occurredAt }) => paceOf(data, occurredAt).rate,
    }),
    estimatedEnd: t.field({
      type: 'DateTime',
      nullable: true,
      description: 'When the last of them ends if it goes on at this rate; null where that is not known.',
      resolve: ({ data, occurredAt }) => paceOf(data, occurredAt).estimatedEnd,
    }),
    batch: t.prismaField({
      type: Batch,
      nullable: true,
      description: 'The batch as it is now.',
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
      'Every change of every batch, or of one, in order. It can be resumed: nothing is lost or repeated.',
    args: {
      batchId: t.arg.id({ description: `${idWords} Left out, all batches.` }),
      after: t.arg.string({ description: afterWords }),
    },
    subscribe: async (_root, args, ctx) => {
      if (args.batchId == null) return followLog(ctx, args.after, isBatchEvent)
      const id = batchId(args.batchId)
      const known = await ctx.database.prisma.batch.count({ where: { id, ...mine(ctx) } })
      if (known === 0) throw noSuchBatch()
      return followLog(ctx, args.after, (event) => isBatchEvent(event) && event.data.batch_id === id)
    },
    resolve: (event) => event as Progress,
  }),
)
