import { mine } from '../../identity/actor.ts'
import type { Context } from '../../context.ts'
import { builder } from '../../graphql/builder.ts'
import { inputOf } from '../../graphql/input.ts'
import { PaymentMethod, stateEnum } from '../../graphql/enums.ts'
import { refusals } from '../../graphql/errors.ts'
import { readSmallId } from '../../shared/ids.ts'
import { countedConnectionType, newestFirst } from '../../graphql/connection.ts'
import { limits } from '../../shared/limits.ts'
import { currency } from '../../shared/money.ts'
import { addRecipients } from './add-recipients.ts'
import { cancelBatch } from './cancel.ts'
import { createBatch, rehearseCreate } from './create.ts'
import { duplicatesOf } from './duplicates.ts'
import { BatchForecast, DuplicateAccount, InputWarning } from './forecast-schema.ts'
import type { BatchChange } from './forecast.ts'
import { batchesWhere, batchFilterInput } from './list.ts'
import { processBatch, rehearseProcess } from './process.ts'
import { countsOf } from './recipient-pages.ts'
import { retryFailed } from './retry.ts'
import { batchStates } from './states.ts'
import { recipientInput } from './recipients.ts'

export const BatchStatus = stateEnum('BatchStatus', batchStates, 'Where a batch stands.')

/** What `countsOf` reads. */
export const countsSelect = {
  id: true,
  recipientCount: true,
  processingCount: true,
  succeededCount: true,
  failedCount: true,
  cancelledCount: true,
} as const

export const Batch = builder.prismaNode('Batch', {
  id: { field: 'id' },
  findUnique: (id, ctx) => ({ id_merchantId: { ...mine(ctx), id: batchId(id) } }),
  nullable: true,
  scope: ['bulk_pay'],
  description: 'Many people who are paid together.',
  fields: (t) => ({
    databaseId: t.expose('id', { type: 'SafeInt', description: 'Its id in REST.' }),
    title: t.exposeString('title', { nullable: true }),
    status: t.expose('status', { type: BatchStatus }),
    currency: t.string({ resolve: () => currency }),
    recipientCount: t.exposeInt('recipientCount'),
    totalAmount: t.expose('totalAmount', { type: 'Amount', description: 'Whole XOF, of all of them.' }),
    pendingCount: t.int({
      description: 'Those whose turn has not come.',
      select: countsSelect,
      resolve: (batch) => countsOf(batch).pending,
    }),
    processingCount: t.exposeInt('processingCount', {
      description: 'At their operators now; an outcome that is not known is one of these.',
    }),
    succeededCount: t.exposeInt('succeededCount'),
    failedCount: t.exposeInt('failedCount'),
    cancelledCount: t.exposeInt('cancelledCount'),
    paidAmount: t.expose('paidAmount', {
      type: 'Amount',
      description: 'Whole XOF that left the balance; an operator may pay less than was asked for.',
    }),
    returnedAmount: t.expose('returnedAmount', {
      type: 'Amount',
      description: 'What of it operators gave back later; it is available again.',
    }),
    duplicates: t.field({
      type: [DuplicateAccount],
      select: { id: true },
      description: 'Accounts that it has more than once, all of which are paid: the first 100.',
      resolve: ({ id }, _args, ctx) => duplicatesOf(ctx, id),
      extensions: { lengthMax: limits.batchDuplicatesShown },
    }),
    retryOf: t.relation('retryOf', {
      nullable: true,
      description: 'The batch whose failed recipients this one pays anew.',
    }),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
    startedAt: t.expose('startedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'Since when its recipients are sent their money.',
    }),
    processedAt: t.expose('processedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When it ended, whichever way.',
    }),
  }),
})

export const idWords = 'Its global id, or its id in REST.'

/** The batch that a client names; -1 where it names none. */
export const batchId = (id: string): number => readSmallId('Batch', id)

const BatchFilter = inputOf('BatchFilter', batchFilterInput, {
  description: 'Which batches a list shows; what is left out does not matter.',
})

const Batches = countedConnectionType(Batch, 'Batch', 'A page of batches.')

builder.queryFields((t) => ({
  batch: t.prismaField({
    type: Batch,
    nullable: true,
    scope: ['bulk_pay'],
    description: 'One batch.',
    args: { id: t.arg.id({ required: true, description: idWords }) },
    resolve: (query, _root, { id }, ctx) =>
      ctx.database.prisma.batch.findFirst({ ...query, where: { id: batchId(id), ...mine(ctx) } }),
  }),
  batches: t.field({
    type: Batches,
    scope: ['bulk_pay'],
    description: 'Batches, newest first.',
    args: {
      ...t.arg.connectionArgs(),
      filter: t.arg({ type: BatchFilter }),
      offset: t.arg.int({ description: 'Rows to pass over; cursors are faster.' }),
    },
    resolve: (_root, { filter, ...args }, ctx, info) =>
      newestFirst(ctx, info, {
        type: 'Batch',
        args,
        table: ctx.database.prisma.batch,
        where: batchesWhere(ctx, filter),
        hasSmallIds: true,
      }),
  }),
}))

const BatchPayload = builder.objectRef<BatchChange>('BatchPayload').implement({
  description: 'The batch that a mutation made or changed, or what a dry run of it would come to.',
  fields: (t) => ({
    batch: t.prismaField({
      type: Batch,
      nullable: true,
      description: 'As it stands; null after a dry run that would have made one.',
      resolve: (query, { id }, _args, ctx) => {
        // Looked at in any case: the library warns of what nobody looks at.
        const asked = { ...query }
        return id === null ? null : readBatch(ctx, asked, id)
      },
    }),
    dryRun: t.field({
      type: BatchForecast,
      nullable: true,
      description: 'What it would come to; null where it was no dry run.',
      resolve: ({ forecast }) => forecast ?? null,
    }),
    warnings: t.field({
      type: [InputWarning],
      description: 'What was taken and may be a mistake: accounts that come again. The first 100.',
      resolve: ({ warnings }) => [...(warnings ?? [])],
      extensions: { lengthMax: limits.batchDuplicatesShown },
    }),
  }),
})

function readBatch(ctx: Context, query: object, id: number) {
  return ctx.database.prisma.batch.findFirstOrThrow({ ...query, where: { id, ...mine(ctx) } })
}

const RecipientInput = inputOf('RecipientInput', recipientInput, {
  description: 'Somebody to be paid.',
  fields: {
    name: '1 to 200 characters.',
    account: 'A mobile number of Mali, in any usual writing.',
    amount: 'Whole XOF, 1,000 to 100,000,000.',
    paymentMethod:
      "Left out: that of the batch, else of the merchant's beneficiary with this account, else the one " +
      'that the number suggests.',
  },
  without: ['currency'],
})

const CreateBatchInput = builder.inputType('CreateBatchInput', {
  description: 'A batch (specification: POST /bulk/batches).',
  fields: (t) => ({
    title: t.string({ description: 'At most 200 characters.' }),
    paymentMethod: t.field({ type: PaymentMethod, description: 'Of those that bring none of their own.' }),
    recipients: t.field({ type: [RecipientInput], description: 'At most 10,000; more may be added.' }),
  }),
})

const dryRunWords =
  'True: all of it is judged and done as it would be, then undone. Nothing is written, and no ' +
  'Idempotency-Key used up.'

builder.mutationFields((t) => ({
  createBatch: t.field({
    type: BatchPayload,
    nullable: true,
    scope: ['bulk_pay'],
    description: 'Makes a draft of a batch, with all its recipients or none.',
    errors: refusals('INVALID_INPUT', 'UNAUTHENTICATED'),
    args: {
      input: t.arg({ type: CreateBatchInput, required: true }),
      dryRun: t.arg.boolean({ description: dryRunWords }),
    },
    resolve: (_root, { input, dryRun }, ctx) =>
      dryRun ? rehearseCreate(ctx, input) : createBatch(ctx, input),
  }),
  addRecipients: t.field({
    type: BatchPayload,
    nullable: true,
    scope: ['bulk_pay'],
    description: 'Adds recipients to a draft, all or none.',
    errors: refusals('INVALID_INPUT', 'NOT_FOUND', 'STATE_CONFLICT', 'UNAUTHENTICATED'),
    args: {
      id: t.arg.id({ required: true, description: idWords }),
      recipients: t.arg({ type: [RecipientInput], required: true, description: 'At most 10,000 in all.' }),
    },
    resolve: (_root, { id, recipients }, ctx) => addRecipients(ctx, batchId(id), recipients),
  }),
  processBatch: t.field({
    type: BatchPayload,
    nullable: true,
    scope: ['bulk_pay'],
    movesMoney: true,
    description:
      'Pays the recipients of a draft: its whole total is set aside first, or nothing happens. Where the ' +
      'settings ask for approval, people decide before anybody is paid.',
    errors: refusals(
      'INVALID_INPUT',
      'NOT_FOUND',
      'STATE_CONFLICT',
      'LIMIT_EXCEEDED',
      'INSUFFICIENT_BALANCE',
      'PAYMENTS_OUT_HALTED',
      'UNAUTHENTICATED',
    ),
    args: {
      id: t.arg.id({ required: true, description: idWords }),
      dryRun: t.arg.boolean({ description: dryRunWords }),
    },
    resolve: (_root, { id, dryRun }, ctx) =>
      dryRun ? rehearseProcess(ctx, batchId(id)) : processBatch(ctx, batchId(id)),
  }),
  cancelBatch: t.field({
    type: BatchPayload,
    nullable: true,
    scope: ['bulk_pay'],
    description:
      'Cancels what was not sent: all of a draft, the rest of a batch that is PROCESSING. Those at their ' +
      'operators end as these say.',
    errors: refusals('NOT_FOUND', 'STATE_CONFLICT'),
    args: { id: t.arg.id({ required: true, description: idWords }) },
    resolve: (_root, { id }, ctx) => cancelBatch(ctx, batchId(id)),
  }),
  retryFailed: t.field({
    type: BatchPayload,
    nullable: true,
    scope: ['bulk_pay'],
    description:
      'Makes a draft of those who failed in a batch that has ended: one, or another where that was ' +
      'cancelled before anybody was sent.',
    errors: refusals('NOT_FOUND', 'STATE_CONFLICT', 'UNAUTHENTICATED'),
    args: { batchId: t.arg.id({ required: true, description: idWords }) },
    resolve: (_root, args, ctx) => retryFailed(ctx, batchId(args.batchId)),
  }),
}))
