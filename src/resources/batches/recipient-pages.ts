import { sqlFunction, sqlType } from '../../database/sql-function.ts'
import { z } from 'zod'
import type { Batch, BatchRecipient } from '../../../prisma/generated/prisma/client.ts'
import { mine } from '../../identity/callers/actor.ts'
import { type Context, loader } from '../../context.ts'
import { amountRange, searchOf, searchText, someOf } from '../../shared/filter.ts'
import { oneOf, phone, provider, readInput, text } from '../../shared/input.ts'
import { limits } from '../../shared/limits.ts'
import { type PageConnection, connect, edgeOf, type PageArgs, readPage } from '../../shared/page.ts'
import { recipientStates } from './states.ts'

export const recipientFilterInput = z.object({
  status: someOf(oneOf(recipientStates.statuses)).nullish(),
  paymentMethod: someOf(provider).nullish(),
  account: phone.nullish(),
  name: text({ min: 1, max: limits.recipientNameLengthMax }).nullish(),
  search: searchText.nullish(),
  ...amountRange,
})

interface RecipientsPage extends PageArgs {
  filter?: z.input<typeof recipientFilterInput> | null | undefined
}

/** The counts of recipients that the row of a batch stores. */
export type Counted = Pick<
  Batch,
  | 'id'
  | 'recipientCount'
  | 'processingCount'
  | 'succeededCount'
  | 'failedCount'
  | 'cancelledCount'
  | 'totalAmount'
>

/**
 * A page of the recipients of a batch, their number and the sum of their amounts. Each is read only when its
 * function is called.
 */
export interface RecipientsOfBatch {
  read: () => Promise<PageConnection<BatchRecipient>>
  count: () => Promise<number>
  /** Adds up the amounts, in whole francs. */
  amount: () => Promise<bigint>
}

/**
 * Returns readers for a page of the recipients of a batch, newest first, and for their number. If one
 * operation reads the same page of several batches, one statement reads them all.
 * @throws DomainError INVALID_INPUT, UNAUTHENTICATED
 */
export function pageOfRecipients(ctx: Context, batch: Counted, raw: RecipientsPage): RecipientsOfBatch {
  const page = readPage(raw)
  const { amountMin, amountMax, search, ...filter } = readInput(recipientFilterInput, raw.filter ?? {})
  const computed = {
    atLeast: amountMin?.toString() ?? null,
    atMost: amountMax?.toString() ?? null,
    ...patternsOf(search),
  }
  const { before, after, take, skip, isBackward } = page
  const options: PageOptions = {
    ...filter,
    ...computed,
    above: before?.toString() ?? everywhere.above,
    below: after?.toString() ?? everywhere.below,
    take,
    skip,
    isBackward,
  }
  const sums = () => loaderOf(ctx, 'sums', { ...everywhere, ...filter, ...computed }, sumRows).load(batch.id)
  const { status, ...others } = filter
  const hasOthers = Object.values({ ...others, ...computed }).some((value) => value != null)
  return {
    read: async () => {
      const rows = await loaderOf(ctx, 'rows', options, readRows).load(batch.id)
      return connect(page, rows.map(edgeOf))
    },
    amount: async () => (hasOthers || status ? (await sums()).amount : batch.totalAmount),
    count: async () => {
      if (hasOthers) return (await sums()).n
      if (!status) return batch.recipientCount
      const counts = countsOf(batch)
      return [...new Set(status)].reduce((sum, each) => sum + counts[each], 0)
    },
  }
}

function patternsOf(search: string | null | undefined) {
  const [words, spaceless] = searchOf(search) ?? []
  return { pattern: words?.pattern ?? null, spaceless: spaceless?.pattern ?? null }
}

/** Returns the number of recipients of a batch in each status. */
export function countsOf(batch: Counted) {
  const { recipientCount, processingCount, succeededCount, failedCount, cancelledCount } = batch
  return {
    pending: recipientCount - processingCount - succeededCount - failedCount - cancelledCount,
    processing: processingCount,
    success: succeededCount,
    failed: failedCount,
    cancelled: cancelledCount,
  }
}

/** The options of a page, the same for every batch. Ids are text, because the options become JSON. */
interface PageOptions
  extends Omit<z.output<typeof recipientFilterInput>, 'amountMin' | 'amountMax' | 'search'> {
  atLeast: string | null
  atMost: string | null
  pattern: string | null
  spaceless: string | null
  above: string
  below: string
  take: number
  skip: number
  isBackward: boolean
}

/** The bounds that select all recipients of a batch. */
const everywhere = { above: '0', below: String(2n ** 63n - 1n), take: 0, skip: 0, isBackward: false }

type Read<T> = (ctx: Context, batchIds: readonly number[], options: PageOptions) => Promise<T[]>

function loaderOf<T>(ctx: Context, kind: string, options: PageOptions, read: Read<T>) {
  const name = `recipients ${kind} ${JSON.stringify(options)}`
  return loader<number, T>(ctx, name, (batchIds) => read(ctx, batchIds, options))
}

/** The types of the arguments that select batches and filter their recipients. */
const filterTypes = {
  merchant: 'int',
  batches: 'int[]',
  states: sqlType<readonly string[] | null>('recipient_status[]'),
  methods: sqlType<readonly string[] | null>('provider[]'),
  number: 'text?',
  title: 'text?',
  amountMin: sqlType<string | null>('bigint?'),
  amountMax: sqlType<string | null>('bigint?'),
  pattern: 'text?',
  spaceless: 'text?',
} as const

const pagesOf = sqlFunction('pages_of_recipients', {
  takes: {
    ...filterTypes,
    above: sqlType<string>('bigint'),
    below: sqlType<string>('bigint'),
    back: 'boolean',
    take: 'int',
    skip: 'int',
  },
  gives: {
    id: 'bigint',
    merchantId: 'int',
    batchId: 'int',
    name: 'text',
    account: 'text',
    amount: 'bigint',
    paymentMethod: 'provider',
    status: sqlType<BatchRecipient['status']>('recipient_status'),
    operatorReference: 'text?',
    failureReason: 'text?',
    failureMessage: 'text?',
    settledAmount: 'bigint?',
    evidenceSource: 'text?',
    sentAt: 'timestamptz?',
    settledAt: 'timestamptz?',
    reversedAt: 'timestamptz?',
  },
})

async function readRows(ctx: Context, batchIds: readonly number[], options: PageOptions) {
  const { above, below, isBackward: back, take, skip } = options
  const { merchantPool } = ctx.database
  const rows = await pagesOf(merchantPool, {
    ...requestsOf(ctx, batchIds, options),
    above,
    below,
    back,
    take,
    skip,
  })
  const byBatch = Map.groupBy(rows as BatchRecipient[], ({ batchId }) => batchId)
  return batchIds.map((id) => byBatch.get(id) ?? [])
}

const sumsOf = sqlFunction('sums_of_recipients', {
  takes: filterTypes,
  gives: { batchId: 'int', n: 'int', amount: 'bigint' },
})

async function sumRows(ctx: Context, batchIds: readonly number[], options: PageOptions) {
  const rows = await sumsOf(ctx.database.merchantPool, requestsOf(ctx, batchIds, options))
  const byBatch = new Map(rows.map((row) => [row.batchId, row]))
  return batchIds.map((id) => byBatch.get(id) ?? { n: 0, amount: 0n })
}

function requestsOf(ctx: Context, batchIds: readonly number[], options: PageOptions) {
  return {
    merchant: mine(ctx).merchantId,
    // A query may contain the same batch under two aliases: read it once.
    batches: [...new Set(batchIds)],
    states: options.status ?? null,
    methods: options.paymentMethod ?? null,
    number: options.account,
    title: options.name,
    amountMin: options.atLeast,
    amountMax: options.atMost,
    pattern: options.pattern,
    spaceless: options.spaceless,
  }
}
