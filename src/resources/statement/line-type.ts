import { builder } from '../../graphql/builder.ts'
import { connectionType } from '../../graphql/connection.ts'
import type { StatementLine, Holdings } from '../../ledger/statement.ts'
import { Entry } from './entry-type.ts'
import { idIn } from './origin.ts'
import { CounterpartyType, loadDescription, loadSubject, StatementSubject } from './subject-type.ts'

// The GraphQL types of the lines of a statement, with the balances before and after them.

export const StatementBalance = builder.objectRef<Holdings>('StatementBalance').implement({
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

const nullWords = 'null when there is none, or the token does not have the scope that shows it.'

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
    balanceAfter: t.expose('balanceAfter', {
      type: StatementBalance,
      description: 'The balance right after the change.',
    }),
    subject: t.field({
      type: StatementSubject,
      nullable: true,
      description: `The payment or the batch that the entry belongs to; ${nullWords}`,
      resolve: ({ origin }, _args, ctx, info) => loadSubject(ctx, info, origin) as Promise<never>,
    }),
    reference: t.string({
      nullable: true,
      description: `The reference of the transaction or payout that the entry belongs to; ${nullWords}`,
      resolve: async ({ origin }, _args, ctx, info) =>
        (await loadDescription(ctx, info, origin))?.reference ?? null,
    }),
    counterparty: t.field({
      type: CounterpartyType,
      nullable: true,
      description: `The person who pays or is paid; ${nullWords}`,
      resolve: async ({ origin }, _args, ctx, info) => {
        const { phone, name } = (await loadDescription(ctx, info, origin)) ?? { phone: null, name: null }
        return phone === null ? null : { phone, name }
      },
    }),
    transactionId: t.field({
      type: 'SafeInt',
      nullable: true,
      description: 'The REST id of the transaction that the entry belongs to; null for other entries.',
      resolve: ({ origin }) => idIn(origin, 'transaction'),
    }),
    payoutId: t.field({
      type: 'SafeInt',
      nullable: true,
      description: 'The REST id of the payout that the entry belongs to; null for other entries.',
      resolve: ({ origin }) => idIn(origin, 'payout'),
    }),
    batchId: t.field({
      type: 'SafeInt',
      nullable: true,
      description:
        'The REST id of the batch whose money was reserved or released as a whole; null for ' +
        'other entries.',
      resolve: ({ origin }) => idIn(origin, 'batch'),
    }),
    recipientId: t.field({
      type: 'SafeInt',
      nullable: true,
      description: 'The REST id of the batch recipient that the entry belongs to; null for other entries.',
      resolve: ({ origin }) => idIn(origin, 'recipient'),
    }),
  }),
})
export const Lines = connectionType(Line, 'StatementLine', 'A page of statement lines.')
