import { mine } from '../../identity/callers/actor.ts'
import type { Context } from '../../context.ts'
import { builder } from '../../graphql/builder.ts'
import { inputOf } from '../../graphql/input.ts'
import { Currency, stateEnum } from '../../graphql/enums.ts'
import { refusals } from '../../graphql/errors.ts'
import { readSmallId } from '../../shared/ids.ts'
import { readInput } from '../../shared/input.ts'
import { connectionType, offsetArg } from '../../graphql/connection.ts'
import { orderArg, orderedList } from '../../graphql/ordered-list.ts'
import { limits } from '../../shared/limits.ts'
import { currency, grouped } from '../../shared/money.ts'
import { addRecipients } from './add-recipients.ts'
import { cancelBatch } from './cancel.ts'
import { batchTitleLengthMax, createBatch, createBatchInput, dryRunCreate } from './create.ts'
import { duplicatesOf } from './duplicates.ts'
import { BatchForecast, DuplicateAccount, InputWarning } from './preview-schema.ts'
import type { BatchChange } from './preview.ts'
import { batchesWhere, batchFilterInput } from './list.ts'
import { processBatch, dryRunProcess } from './process.ts'
import { countsOf } from './recipient-pages.ts'
import { retryFailed } from './retry.ts'
import { batchStates } from './states.ts'
import { readRows, recipientInput } from './recipients.ts'

export const BatchStatus = stateEnum('BatchStatus', batchStates, 'The status of a batch.', {
  cancelled:
    'The batch was cancelled, rejected, or not approved in time. Payments that were sent ' +
    'before keep their own result.',
  completed: 'All recipients were paid.',
  draft: 'The batch can still be changed; nothing is reserved or paid.',
  failed: 'No recipient was paid.',
  partially_completed: 'All recipients have a final status: some were paid, the others failed.',
  pending_approval: 'The money is reserved, and the batch waits for approvals.',
  processing: 'The recipients are being paid.',
})

/** The columns that `countsOf` reads. */
export const countsSelect = {
  id: true,
  recipientCount: true,
  processingCount: true,
  succeededCount: true,
  failedCount: true,
  cancelledCount: true,
  totalAmount: true,
} as const

export const Batch = builder.prismaNode('Batch', {
  select: { id: true },
  id: { field: 'id' },
  findUnique: (id, ctx) => ({ id_merchantId: { ...mine(ctx), id: batchId(id) } }),
  nullable: true,
  scope: ['bulk_pay'],
  description:
    `A batch: payments to up to ${grouped(limits.batchRecipientsMax)} recipients that are sent ` +
    'together.',
  fields: (t) => ({
    databaseId: t.expose('id', { type: 'SafeInt', description: 'The id of the batch in REST.' }),
    title: t.exposeString('title', {
      nullable: true,
      description:
        `The title that the merchant gave, at most ${batchTitleLengthMax} characters; null when there is ` +
        'none.',
    }),
    status: t.expose('status', { type: BatchStatus, description: 'The present status of the batch.' }),
    currency: t.field({
      type: Currency,
      description: 'The currency of the amounts: always `XOF`.',
      resolve: () => currency,
    }),
    recipientCount: t.exposeInt('recipientCount', { description: 'Number of recipients in the batch.' }),
    totalAmount: t.expose('totalAmount', {
      type: 'Amount',
      description: 'Sum of the amounts of all recipients, in whole XOF.',
    }),
    pendingCount: t.int({
      description: 'Number of recipients that were not sent to an operator yet.',
      select: countsSelect,
      resolve: (batch) => countsOf(batch).pending,
    }),
    processingCount: t.exposeInt('processingCount', {
      description: 'Number of recipients at an operator now, including those with an unknown result.',
    }),
    succeededCount: t.exposeInt('succeededCount', { description: 'Number of recipients that were paid.' }),
    failedCount: t.exposeInt('failedCount', { description: 'Number of recipients whose payment failed.' }),
    cancelledCount: t.exposeInt('cancelledCount', {
      description: 'Number of recipients that were cancelled before they were paid.',
    }),
    paidAmount: t.expose('paidAmount', {
      type: 'Amount',
      description: 'Amount paid to recipients, in whole XOF. An operator may pay less than was requested.',
    }),
    returnedAmount: t.expose('returnedAmount', {
      type: 'Amount',
      description:
        'Part of the paid amount that operators gave back later, in whole XOF. It is available again.',
    }),
    duplicates: t.field({
      type: [DuplicateAccount],
      select: { id: true },
      description:
        'Accounts that occur more than once in the batch, at most the first 100. Each ' +
        'occurrence is paid.',
      resolve: ({ id }, _args, ctx) => duplicatesOf(ctx, id),
      extensions: { lengthMax: limits.batchDuplicatesShown },
    }),
    retryOf: t.relation('retryOf', {
      nullable: true,
      description: 'The batch whose failed recipients this batch pays again; null when it is no retry.',
    }),
    createdAt: t.expose('createdAt', {
      type: 'DateTime',
      description: 'The moment when the batch was created.',
    }),
    startedAt: t.expose('startedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'The moment when the first payments could be sent; null until then.',
    }),
    processedAt: t.expose('processedAt', {
      type: 'DateTime',
      nullable: true,
      description:
        'The moment when the last recipient reached a final status, or the batch was cancelled; ' +
        'null until then.',
    }),
  }),
})

/** Converts a client's id to the id of a batch. Returns -1, which no batch has, if the text is no such id. */
export const batchId = (id: string): number => readSmallId('Batch', id)

const BatchFilter = inputOf('BatchFilter', batchFilterInput, {
  description: 'Selects batches of a list. A batch must match all fields that are given.',
  fields: {
    amountMax: 'Only batches whose recipients together get at most this amount, in whole XOF.',
    amountMin: 'Only batches whose recipients together get at least this amount, in whole XOF.',
    createdBy: 'Only batches of this author: `member:7` or `api_key:12`, as in the audit log.',
    createdFrom: 'Only batches created at or after this moment.',
    createdTo: 'Only batches created at or before this moment, or on this day.',
    status: 'Only batches with one of these statuses.',
  },
})

const Batches = connectionType(Batch, 'Batch', 'A page of batches.', '`totalAmount`s')

builder.queryFields((t) => ({
  batch: t.prismaField({
    type: Batch,
    nullable: true,
    scope: ['bulk_pay'],
    description: 'One batch; null when it does not exist.',
    args: { id: t.arg.id({ required: true, description: 'The batch: its global id, or its id in REST.' }) },
    resolve: (query, _root, { id }, ctx) =>
      ctx.database.prisma.batch.findFirst({ ...query, where: { id: batchId(id), ...mine(ctx) } }),
  }),
  batches: t.field({
    type: Batches,
    scope: ['bulk_pay'],
    description: 'The batches of the merchant, by default newest first.',
    args: {
      ...t.arg.connectionArgs(),
      filter: t.arg({ type: BatchFilter, description: 'Conditions that the batches must match.' }),
      orderBy: t.arg(orderArg),
      offset: t.arg.int(offsetArg),
    },
    resolve: (_root, { filter, orderBy, ...args }, ctx, info) =>
      orderedList(ctx, info, {
        type: 'Batch',
        args,
        table: ctx.database.prisma.batch,
        where: batchesWhere(ctx, filter),
        from: { name: 'batch', amount: 'total_amount' },
        amountField: 'totalAmount',
        search: null,
        orderBy,
        hasSmallIds: true,
      }),
  }),
}))

const BatchPayload = builder.objectRef<BatchChange>('BatchPayload').implement({
  description: 'A created or changed batch, or the result of a dry run.',
  fields: (t) => ({
    batch: t.prismaField({
      type: Batch,
      nullable: true,
      description: 'The present state of the batch; null after a dry run of `createBatch`.',
      resolve: (query, { id }, _args, ctx) => {
        // Read `query` in any case: the library warns when a resolver does not use it.
        const asked = { ...query }
        return id === null ? null : readBatch(ctx, asked, id)
      },
    }),
    dryRun: t.field({
      type: BatchForecast,
      nullable: true,
      description: 'The result of the dry run; null when the request was not a dry run.',
      resolve: ({ forecast }) => forecast ?? null,
    }),
    warnings: t.field({
      type: [InputWarning],
      description:
        'Possible mistakes in accepted input, such as an account that occurs twice. At most 100 ' +
        'are listed.',
      resolve: ({ warnings }) => [...(warnings ?? [])],
      extensions: { lengthMax: limits.batchDuplicatesShown },
    }),
  }),
})

function readBatch(ctx: Context, query: object, id: number) {
  return ctx.database.prisma.batch.findFirstOrThrow({ ...query, where: { id, ...mine(ctx) } })
}

const RecipientInput = inputOf('RecipientInput', recipientInput, {
  description: 'A recipient of a batch.',
  fields: {
    name: `The name of the recipient, 1 to ${limits.recipientNameLengthMax} characters.`,
    account: 'A mobile number in Mali, for example +223 70 00 00 00.',
    amount:
      `The amount in whole XOF, ${grouped(limits.disburseAmountMinXof)} to ` +
      `${grouped(limits.payoutAmountMaxXof)}.`,
    paymentMethod:
      "The operator. Default: that of the batch, else that of the merchant's beneficiary with " +
      'this account, else the one that the number suggests.',
  },
  without: ['currency'],
})

const CreateBatchInput = inputOf('CreateBatchInput', createBatchInput, {
  description: 'A new batch. Same as POST /bulk/batches in REST.',
  fields: {
    title: `A title for the batch, at most ${batchTitleLengthMax} characters.`,
    paymentMethod: 'The operator for recipients that name none.',
    recipients: `The recipients, at most ${grouped(limits.batchRecipientsMax)}. More can be added later.`,
  },
})

const dryRunArg = {
  defaultValue: false,
  description:
    'True to check the batch without creating or paying it. Nothing is written, and an Idempotency-Key ' +
    'is not used up.',
} as const

builder.mutationFields((t) => ({
  createBatch: t.field({
    type: BatchPayload,
    nullable: true,
    scope: ['bulk_pay'],
    description:
      'Creates a draft batch with its recipients. When one of them is invalid, nothing is created.',
    errors: refusals('INVALID_INPUT', 'STATE_CONFLICT', 'UNAUTHENTICATED'),
    args: {
      input: t.arg({
        type: CreateBatchInput,
        description: 'The title and the recipients of the batch.',
        required: true,
      }),
      dryRun: t.arg.boolean(dryRunArg),
    },
    extensions: {
      readsAs: async ({ input }: { input: Parameters<typeof createBatch>[1] }) => ({
        input: { ...readInput(createBatchInput, input), recipients: await readRows(input.recipients) },
      }),
    },
    resolve: (_root, { input, dryRun }, ctx) => (dryRun ? dryRunCreate(ctx, input) : createBatch(ctx, input)),
  }),
  addRecipients: t.field({
    type: BatchPayload,
    nullable: true,
    scope: ['bulk_pay'],
    description: 'Adds recipients to a draft batch. When one of them is invalid, none is added.',
    errors: refusals('INVALID_INPUT', 'NOT_FOUND', 'STATE_CONFLICT', 'UNAUTHENTICATED'),
    args: {
      id: t.arg.id({ required: true, description: 'The draft batch: its global id, or its id in REST.' }),
      recipients: t.arg({
        type: [RecipientInput],
        required: true,
        description:
          'The recipients to add. A batch holds at most ' +
          `${grouped(limits.batchRecipientsMax)} in all, with those that it has already.`,
      }),
    },
    extensions: {
      readsAs: async ({ id, recipients }: { id: string; recipients: unknown }) => ({
        id: batchId(id),
        recipients: await readRows(recipients),
      }),
    },
    resolve: (_root, { id, recipients }, ctx) => addRecipients(ctx, batchId(id), recipients),
  }),
  processBatch: t.field({
    type: BatchPayload,
    nullable: true,
    scope: ['bulk_pay'],
    movesMoney: true,
    description:
      'Pays the recipients of a draft batch. The whole total is reserved first; when the ' +
      'balance is too small, nothing happens. When the settings require approval, members ' +
      'approve before anyone is paid.',
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
      id: t.arg.id({ required: true, description: 'The batch: its global id, or its id in REST.' }),
      dryRun: t.arg.boolean(dryRunArg),
      expectedTotal: t.arg({
        type: 'Amount',
        description:
          'The total that you were shown, in whole XOF. If the draft has another one, because recipients ' +
          'were added meanwhile, nothing is paid, and the refusal is STATE_CONFLICT.',
      }),
    },
    resolve: (_root, { id, dryRun, expectedTotal }, ctx) =>
      dryRun ? dryRunProcess(ctx, batchId(id), expectedTotal) : processBatch(ctx, batchId(id), expectedTotal),
  }),
  cancelBatch: t.field({
    type: BatchPayload,
    nullable: true,
    scope: ['bulk_pay'],
    description:
      'Cancels the recipients that were not sent yet: all of a draft, or the rest of a batch ' +
      'that is PROCESSING. Payments already at an operator keep their own result.',
    errors: refusals('NOT_FOUND', 'STATE_CONFLICT'),
    args: { id: t.arg.id({ required: true, description: 'The batch: its global id, or its id in REST.' }) },
    resolve: (_root, { id }, ctx) => cancelBatch(ctx, batchId(id)),
  }),
  retryFailed: t.field({
    type: BatchPayload,
    nullable: true,
    scope: ['bulk_pay'],
    description:
      'Creates a draft batch of the failed recipients of a batch that has ended. A batch can ' +
      'be retried once, and again when the retry was cancelled before anyone was paid.',
    errors: refusals('NOT_FOUND', 'STATE_CONFLICT', 'UNAUTHENTICATED'),
    args: {
      batchId: t.arg.id({
        required: true,
        description: 'The batch that has ended: its global id, or its id in REST.',
      }),
    },
    resolve: (_root, args, ctx) => retryFailed(ctx, batchId(args.batchId)),
  }),
}))
