import { mine } from '../../identity/actor.ts'
import { builder } from '../../graphql/builder.ts'
import { connectionType } from '../../graphql/connection.ts'
import { wordEnum } from '../../graphql/enums.ts'
import { type Account, accounts, type LedgerStep, ledgerSteps } from '../../ledger/accounts.ts'
import type { LedgerEntry } from '../../ledger/entries.ts'
import {
  type Held,
  type LinePlace,
  readLines,
  readStatement,
  type Statement,
  type StatementLine,
} from '../../ledger/statement.ts'
import { currency } from '../../shared/money.ts'
import { connect, readPageOf } from '../../shared/page.ts'
import { loadEntries } from './entries.ts'
import { checkSpan, subjectOf } from './span.ts'

const LedgerAccount = wordEnum(
  'LedgerAccount',
  Object.keys(accounts) as Account[],
  'The accounts of a merchant in the ledger.',
)
const Step = wordEnum('LedgerStep', Object.keys(ledgerSteps) as LedgerStep[], 'Why money moves.')

const Entry = builder.objectRef<LedgerEntry>('LedgerEntry').implement({
  scope: ['balance'],
  description: 'Money that moved from one account of the merchant to another; it never changes.',
  fields: (t) => ({
    databaseId: t.field({ type: 'SafeInt', resolve: ({ id }) => id }),
    step: t.expose('step', { type: Step }),
    debit: t.expose('debit', { type: LedgerAccount, description: 'Where it came from.' }),
    credit: t.expose('credit', { type: LedgerAccount, description: 'Where it went.' }),
    amount: t.expose('amount', { type: 'Amount', description: 'Whole XOF.' }),
    createdAt: t.expose('createdAt', { type: 'DateTime' }),
  }),
})

builder.prismaObjectField('Transaction', 'ledgerEntries', (t) =>
  t.field({
    type: [Entry],
    select: { id: true },
    description: 'How it moved money, oldest first.',
    resolve: ({ id }, _args, ctx) => loadEntries(ctx, `transaction:${id}`),
  }),
)
builder.prismaObjectField('Payout', 'ledgerEntries', (t) =>
  t.field({
    type: [Entry],
    select: { id: true },
    description: 'How it moved money, oldest first.',
    resolve: ({ id }, _args, ctx) => loadEntries(ctx, `payout:${id}`),
  }),
)
builder.prismaObjectField('Batch', 'ledgerEntries', (t) =>
  t.field({
    type: [Entry],
    select: { id: true },
    description:
      'How its money was set aside and given back as a whole, oldest first; the rest is of recipients.',
    resolve: ({ id }, _args, ctx) => loadEntries(ctx, `batch:${id}`),
  }),
)
builder.prismaObjectField('BatchRecipient', 'ledgerEntries', (t) =>
  t.field({
    type: [Entry],
    description: 'How it moved money, oldest first; it was set aside with that of its batch.',
    resolve: ({ id }, _args, ctx) => loadEntries(ctx, `recipient:${id}`),
  }),
)

const StatementBalance = builder.objectRef<Held>('StatementBalance').implement({
  description: 'What a merchant held at a moment, whole XOF.',
  fields: (t) => ({
    balance: t.expose('balance', { type: 'Amount', description: 'available + reserved.' }),
    available: t.expose('available', { type: 'Amount' }),
    reserved: t.expose('reserved', { type: 'Amount' }),
    receivable: t.expose('receivable', { type: 'Amount', description: 'What the merchant owed.' }),
  }),
})

const Line = builder.objectRef<StatementLine>('StatementLine').implement({
  description: 'What one entry changed of what the merchant holds, whole XOF, with its sign.',
  fields: (t) => ({
    entry: t.field({ type: Entry, resolve: (line) => line }),
    availableChange: t.expose('availableChange', { type: 'Amount' }),
    reservedChange: t.expose('reservedChange', { type: 'Amount' }),
    receivableChange: t.expose('receivableChange', { type: 'Amount' }),
    transactionId: t.field({
      type: 'SafeInt',
      nullable: true,
      description: 'The transaction that it is about, by its id in REST.',
      resolve: ({ cause }) => subjectOf(cause).transactionId,
    }),
    payoutId: t.field({
      type: 'SafeInt',
      nullable: true,
      description: 'The payout that it is about, by its id in REST.',
      resolve: ({ cause }) => subjectOf(cause).payoutId,
    }),
    batchId: t.field({
      type: 'SafeInt',
      nullable: true,
      description: 'The batch whose money is set aside or given back as a whole, by its id in REST.',
      resolve: ({ cause }) => subjectOf(cause).batchId,
    }),
    recipientId: t.field({
      type: 'SafeInt',
      nullable: true,
      description: 'The recipient of a batch that it is about, by its id in REST.',
      resolve: ({ cause }) => subjectOf(cause).recipientId,
    }),
  }),
})
const Lines = connectionType(Line, 'StatementLine', 'A page of the lines of a statement.')

builder.queryField('statement', (t) =>
  t.field({
    type: builder.objectRef<Statement>('Statement').implement({
      description: 'What a merchant held before and after a time, and every change in between.',
      fields: (statement) => ({
        from: statement.expose('from', { type: 'DateTime', description: 'The first moment of it.' }),
        to: statement.expose('to', { type: 'DateTime', description: 'The first moment after it.' }),
        currency: statement.string({ resolve: () => currency }),
        opening: statement.field({ type: StatementBalance, resolve: ({ opening }) => opening }),
        closing: statement.field({
          type: StatementBalance,
          description: 'Opening and lines together: the service proves it before it answers.',
          resolve: ({ closing }) => closing,
        }),
        totalIn: statement.expose('totalIn', {
          type: 'Amount',
          description: 'What came to the balance: opening + totalIn - totalOut is the closing balance.',
        }),
        totalOut: statement.expose('totalOut', { type: 'Amount', description: 'What left the balance.' }),
        lines: statement.field({
          type: Lines,
          description: 'The changes, oldest first.',
          args: {
            first: t.arg.int({ description: '1 to 100; 20 where left out.' }),
            after: t.arg.string({ description: 'Cursor of the last line that you have.' }),
          },
          resolve: async ({ from, to }, args, ctx) => {
            const page = readPageOf(args, placeOf)
            const rows = await readLines(ctx.database.merchantPool, mine(ctx).merchantId, {
              ...page,
              from,
              to,
            })
            return connect(
              page,
              rows.map((node) => ({ cursor: cursorOf(node), node })),
            )
          },
        }),
      }),
    }),
    nullable: true,
    scope: ['balance'],
    description: 'The statement of the account for a time, from the ledger.',
    args: {
      from: t.arg({ type: 'DateTime', required: true, description: 'The first moment of it.' }),
      to: t.arg({ type: 'DateTime', description: 'The first moment after it; now where left out.' }),
    },
    resolve: (_root, args, ctx) =>
      readStatement(ctx.database.merchantPool, mine(ctx).merchantId, checkSpan(ctx, args)),
  }),
)

function cursorOf({ createdAt, id }: LinePlace): string {
  return `${createdAt.getTime()}.${id}`
}

function placeOf(cursor: string): LinePlace | null {
  const [, at, id] = /^(\d{1,14})\.(\d{1,18})$/.exec(cursor) ?? []
  return at === undefined || id === undefined ? null : { createdAt: new Date(Number(at)), id: BigInt(id) }
}
