import type { GraphQLResolveInfo } from 'graphql'
import type { Context } from '../context.ts'
import { findIds, type ListedTable, type Position, type Search, totalOf } from '../database/find-rows.ts'
import { invalidInput } from '../shared/input.ts'
import { connect, idOf, listDefaults, type ListOrder, readPageOf } from '../shared/page.ts'
import { type LazyConnection, lazyConnection, type Newest, newestFirst, selectedOf } from './connection.ts'
import { wordEnum } from './enums.ts'

// The lists that a client may search, or ask for in another order than the newest first.

const ListOrderEnum = wordEnum<ListOrder>(
  'ListOrder',
  {
    amount_asc: 'The smallest amounts first.',
    amount_desc: 'The largest amounts first.',
    created_at_asc: 'The oldest first.',
    created_at_desc: 'The newest first.',
  },
  'The order of a list. Rows of the same amount are in the order of their ids.',
)

/** The argument for the order of a list. */
export const orderArg = {
  type: ListOrderEnum,
  defaultValue: listDefaults.orderBy,
  description: 'The order of the list. A search takes only the orders of creation.',
} as const

interface Ordered<Row> extends Newest<Row> {
  where: { merchantId: number }
  from: ListedTable
  /** The column of the amounts, as Prisma names it. */
  amountField: 'amount' | 'totalAmount'
  orderBy: ListOrder | null | undefined
  search: Search | null
}

/**
 * The columns of conditions that few rows may meet. A list with such a condition uses `findIds`, because
 * PostgreSQL may plan a prepared statement of Prisma for all values, and then reads the list row by row.
 */
const selective = ['amount', 'totalAmount', 'maker', 'createdAt', 'status', 'beneficiaryId']

/**
 * Makes a list of the rows of a table in the order that the client asks for. A list that finds its pages by
 * counts (`find`) needs an index for the amount only.
 * @throws DomainError INVALID_INPUT that names the wrong argument
 */
export function orderedList<Row extends { id: bigint | number }>(
  ctx: Context,
  info: GraphQLResolveInfo,
  list: Ordered<Row>,
): LazyConnection<Row> {
  const { args, where, search, from, amountField, table, type, hasSmallIds } = list
  const filtered = { table: from, where, search }
  const { merchantPool } = ctx.database
  const {
    count = async () => Number(await totalOf(merchantPool, filtered, 'rows')),
    amount = () => totalOf(merchantPool, filtered, 'amounts'),
  } = list
  const order = list.orderBy ?? listDefaults.orderBy
  const columns = list.find ? ['amount'] : selective
  const isPlain = !search && !columns.some((column) => column in where)
  if (isPlain && order === listDefaults.orderBy) return newestFirst(ctx, info, { ...list, count, amount })
  const isByAmount = order.startsWith('amount')
  if (search && isByAmount)
    throw invalidInput([{ field: 'orderBy', message: 'must be an order of creation for a search' }])
  const page = readPageOf(args, isByAmount ? amountPosition : idPosition)
  const amountOf = (row: Row) => (row as unknown as Record<string, bigint>)[amountField] ?? 0n
  const cursorOf = (row: Row) => (isByAmount ? `${amountOf(row)}-${row.id}` : String(row.id))
  const read = async () => {
    const ids = await findIds(merchantPool, { ...filtered, order, ...page })
    const ofCursor = { id: true, ...(isByAmount && { [amountField]: true }) }
    const rows = await table.findMany({
      ...selectedOf(ctx, info, type, ofCursor),
      where: { merchantId: where.merchantId, id: { in: hasSmallIds ? ids.map(Number) : ids } },
    } as never)
    const byId = new Map(rows.map((row) => [BigInt(row.id), row]))
    const found = ids.flatMap((id) => byId.get(id) ?? [])
    return connect(
      page,
      found.map((node) => ({ cursor: cursorOf(node), node })),
    )
  }
  return lazyConnection(read, count, amount)
}

function idPosition(cursor: string): Position | null {
  const id = idOf(cursor)
  return id === null ? null : { amount: null, id }
}

function amountPosition(cursor: string): Position | null {
  const [, amount, id] = /^(\d{1,18})-(\d{1,18})$/.exec(cursor) ?? []
  return amount === undefined || id === undefined ? null : { amount: BigInt(amount), id: BigInt(id) }
}
