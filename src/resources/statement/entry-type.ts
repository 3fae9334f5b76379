import { builder } from '../../graphql/builder.ts'
import { wordEnum } from '../../graphql/enums.ts'
import { accounts, ledgerSteps } from '../../ledger/accounts.ts'
import type { LedgerEntry } from '../../ledger/entries.ts'
import { globalId } from '../../shared/ids.ts'
import { loadEntries } from './entries.ts'

// The GraphQL type of a ledger entry, and the entries of each kind of payment.

const LedgerAccount = wordEnum('LedgerAccount', accounts, 'An account of the merchant in the ledger.')
const Step = wordEnum('LedgerStep', ledgerSteps, 'The reason of a ledger entry.')

export const Entry = builder.objectRef<LedgerEntry>('LedgerEntry').implement({
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
