import { mine } from '../../identity/callers/actor.ts'
import { builder } from '../../graphql/builder.ts'
import { firstArg } from '../../graphql/connection.ts'
import { Currency } from '../../graphql/enums.ts'
import {
  type EntryCursor,
  countLines,
  readLines,
  readStatement,
  type Statement,
} from '../../ledger/statement.ts'
import { currency } from '../../shared/money.ts'
import { globalId } from '../../shared/ids.ts'
import { connect, readPageOf } from '../../shared/page.ts'
import { Lines, StatementBalance } from './line-type.ts'
import { checkSpan } from './span.ts'

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
            'The balance at the end of the period: the opening balance, changed by all lines of the period.',
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
            first: t.arg.int(firstArg),
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
