import { mine } from '../../identity/callers/actor.ts'
import { builder } from '../../graphql/builder.ts'
import { connectionType } from '../../graphql/connection.ts'
import { Currency, wordEnum } from '../../graphql/enums.ts'
import { accounts, ledgerSteps } from '../../ledger/accounts.ts'
import type { LedgerEntry } from '../../ledger/entries.ts'
import {
  type Holdings,
  type EntryCursor,
  countLines,
  readLines,
  readStatement,
  type Statement,
  type StatementLine,
} from '../../ledger/statement.ts'
import { currency } from '../../shared/money.ts'
import { globalId } from '../../shared/ids.ts'
import { connect, readPageOf } from '../../shared/page.ts'
import { loadEntries } from './entries.ts'
import { checkSpan, originOf } from './span.ts'
import { limits } from '../../shared/limits.ts'

const LedgerAccount = wordEnum('LedgerAccount', accounts, 'An account of the merchant in the ledger.')
const Step = wordEnum('LedgerStep', ledgerSteps, 'The reason of a ledger entry.')

const Entry = builder.objectRef<LedgerEntry>('LedgerEntry').implement({
  scope: ['balance'],
  description:
    'A ledger entry: an amount that moved from one account of the merchant to another. It ' +
    'never changes.',
  fields: (t) => ({
    id: t.id({
      description:
        'An id for the cache of a client: the same entry has the same id wherever it is read. `node(id:)` ' +
        'does not find it.',
      resolve: ({ id }) => globalId('LedgerEntry', id),
    }),
    databaseId: t.field({ type: 'SafeInt', description: 'The id of the entry.', resolve: ({ id }) => id }),
    step: t.expose('step', { type: Step, description: 'The reason of the entry.' }),
    debit: t.expose('debit', { type: LedgerAccount, description: 'The account that gave the amount.' }),
    credit: t.expose('credit', { type: LedgerAccount, description: 'The account that received the amount.' }),
    amount: t.expose('amount', { type: 'Amount', description: 'The amount in whole XOF.' }),
    createdAt: t.expose('createdAt', {
      type: 'DateTime',
      description: 'The moment when the entry was written.',
    }),
  }),
})

builder.prismaObjectField('Transaction', 'ledgerEntries', (t) =>
  t.field({
    type: [Entry],
    select: { id: true },
    description: 'Ledger entries of this transaction, oldest first.',
    resolve: ({ id }, _args, ctx) => loadEntries(ctx, `transaction:${id}`),
  }),
)
builder.prismaObjectField('Payout', 'ledgerEntries', (t) =>
  t.field({
    type: [Entry],
    select: { id: true },
    description: 'Ledger entries of this payout, oldest first.',
    resolve: ({ id }, _args, ctx) => loadEntries(ctx, `payout:${id}`),
  }),
)
builder.prismaObjectField('Batch', 'ledgerEntries', (t) =>
  t.field({
    type: [Entry],
    select: { id: true },
    description:
      'Ledger entries that reserved or released money of the whole batch, oldest first. ' +
      'Entries of one payment are on its recipient.',
    resolve: ({ id }, _args, ctx) => loadEntries(ctx, `batch:${id}`),
  }),
)
builder.prismaObjectField('BatchRecipient', 'ledgerEntries', (t) =>
  t.field({
    type: [Entry],
    description: 'Ledger entries of this payment, oldest first. The reservation is on the batch.',
    resolve: ({ id }, _args, ctx) => loadEntries(ctx, `recipient:${id}`),
  }),
)

const StatementBalance = builder.objectRef<Holdings>('StatementBalance').implement({
  description: 'The balance of the merchant at one moment, in whole XOF.',
  fields: (t) => ({
    balance: t.expose('balance', {
      type: 'Amount',
      description: 'Sum of `available` and `reserved`, in whole XOF.',
    }),
    available: t.expose('available', {
      type: 'Amount',
      description: 'Amount that could be used, in whole XOF.',
    }),
    reserved: t.expose('reserved', {
      type: 'Amount',
      description: 'Amount set aside for payments that were not final, in whole XOF.',
    }),
    receivable: t.expose('receivable', {
      type: 'Amount',
      description: 'Amount that the merchant owed, in whole XOF.',
    }),
  }),
})

const Line = builder.objectRef<StatementLine>('StatementLine').implement({
  description: 'The change that one ledger entry made to the balance. Amounts are in whole XOF, with a sign.',
  fields: (t) => ({
    entry: t.field({
      type: Entry,
      description: 'The ledger entry that made the change.',
      resolve: (line) => line,
    }),
    availableChange: t.expose('availableChange', {
      type: 'Amount',
      description: 'Change of the available amount, in whole XOF; negative when it decreased.',
    }),
    reservedChange: t.expose('reservedChange', {
      type: 'Amount',
      description: 'Change of the reserved amount, in whole XOF; negative when it decreased.',
    }),
    receivableChange: t.expose('receivableChange', {
      type: 'Amount',
      description: 'Change of the amount that the merchant owes, in whole XOF; negative when it decreased.',
    }),
    transactionId: t.field({
      type: 'SafeInt',
      nullable: true,
      description: 'The REST id of the transaction that the entry belongs to; null for other entries.',
      resolve: ({ origin }) => originOf(origin).transactionId,
    }),
    payoutId: t.field({
      type: 'SafeInt',
      nullable: true,
      description: 'The REST id of the payout that the entry belongs to; null for other entries.',
      resolve: ({ origin }) => originOf(origin).payoutId,
    }),
    batchId: t.field({
      type: 'SafeInt',
      nullable: true,
      description:
        'The REST id of the batch whose money was reserved or released as a whole; null for ' +
        'other entries.',
      resolve: ({ origin }) => originOf(origin).batchId,
    }),
    recipientId: t.field({
      type: 'SafeInt',
      nullable: true,
      description: 'The REST id of the batch recipient that the entry belongs to; null for other entries.',
      resolve: ({ origin }) => originOf(origin).recipientId,
    }),
  }),
})
const Lines = connectionType(Line, 'StatementLine', 'A page of statement lines.')

builder.queryField('statement', (t) =>
  t.field({
    type: builder.objectRef<Statement>('Statement').implement({
      description:
        'An account statement: the balance before and after a period, and every change in between.',
      fields: (statement) => ({
        id: statement.id({
          description:
            'An id for the cache of a client, made of the merchant and the period; `node(id:)` does not ' +
            'find it.',
          resolve: ({ from, to }, _args, ctx) =>
            globalId('Statement', `${mine(ctx).merchantId}/${from.toISOString()}/${to.toISOString()}`),
        }),
        from: statement.expose('from', {
          type: 'DateTime',
          description: 'Start of the period; changes at this moment are included.',
        }),
        to: statement.expose('to', {
          type: 'DateTime',
          description: 'End of the period; changes at this moment are not included.',
        }),
        currency: statement.field({
          type: Currency,
          description: 'The currency of the amounts: always `XOF`.',
          resolve: () => currency,
        }),
        opening: statement.field({
          type: StatementBalance,
          description: 'The balance at the start of the period.',
          resolve: ({ opening }) => opening,
        }),
        closing: statement.field({
          type: StatementBalance,
          description:
            'The balance at the end of the period. The service checks that the opening balance and all ' +
            'lines add up to it.',
          resolve: ({ closing }) => closing,
        }),
        totalIn: statement.expose('totalIn', {
          type: 'Amount',
          description:
            'Amount that was added to the balance, in whole XOF. Opening balance plus `totalIn` minus ' +
            '`totalOut` is the closing balance.',
        }),
        totalOut: statement.expose('totalOut', {
          type: 'Amount',
          description: 'Amount that left the balance, in whole XOF.',
        }),
        lines: statement.field({
          type: Lines,
          description: 'The changes in the period, oldest first.',
          args: {
            first: t.arg.int({
              description: `Page size, 1 to ${limits.pageSizeMax}. Default: ${limits.pageSizeDefault}.`,
            }),
            after: t.arg.string({ description: 'The cursor of the last line that you have.' }),
          },
          resolve: async ({ from, to }, args, ctx) => {
            const page = readPageOf(args, readCursor)
            const rows = await readLines(ctx.database.merchantPool, mine(ctx).merchantId, {
              ...page,
              from,
              to,
            })
            const edges = rows.map((node) => ({ cursor: cursorOf(node), node }))
            return {
              ...connect(page, edges),
              totalCount: () => countLines(ctx.database.merchantPool, mine(ctx).merchantId, { from, to }),
            }
          },
        }),
      }),
    }),
    nullable: true,
    scope: ['balance'],
    description: 'The account statement of a period, computed from the ledger.',
    args: {
      from: t.arg({
        type: 'DateTime',
        required: true,
        description: 'Start of the period; changes at this moment are included.',
      }),
      to: t.arg({
        type: 'DateTime',
        description:
          'End of the period; changes at this moment are not included, but those of a date are. ' +
          'Default: now.',
      }),
    },
    resolve: (_root, args, ctx) =>
      readStatement(ctx.database.merchantPool, mine(ctx).merchantId, checkSpan(ctx, args)),
  }),
)

function cursorOf({ createdAt, id }: EntryCursor): string {
  return `${createdAt.getTime()}.${id}`
}

function readCursor(cursor: string): EntryCursor | null {
  const [, at, id] = /^(\d{1,14})\.(\d{1,18})$/.exec(cursor) ?? []
  return at === undefined || id === undefined ? null : { createdAt: new Date(Number(at)), id: BigInt(id) }
}
