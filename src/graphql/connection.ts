import type { OutputType } from '@pothos/core'
import { queryFromInfo } from '@pothos/plugin-prisma'
import type { GraphQLResolveInfo } from 'graphql'
import type { Context } from '../context.ts'
import type { Scope } from '../identity/callers/scopes.ts'
import { smallIdMax } from '../shared/ids.ts'
import { invariant } from '../shared/invariant.ts'
import { limits } from '../shared/limits.ts'
import {
  type PageConnection,
  connect,
  edgeOf,
  listDefaults,
  type PageBounds,
  type PageArgs,
  readPage,
} from '../shared/page.ts'
import { builder } from './builder.ts'

// This file defines the lists of the schema: their types, their arguments, and how their rows are read.

type Types = typeof builder.$inferSchemaTypes

/** A list that reads its rows only when a client asks for them. */
export interface LazyConnection<Node> {
  readonly edges: Promise<PageConnection<Node>['edges']>
  readonly pageInfo: Promise<PageConnection<Node>['pageInfo']>
  totalCount(): Promise<number> | number
  /** Only a list whose type has `totalAmount` has it. In whole francs. */
  totalAmount?: () => Promise<bigint>
}

/**
 * Makes a list that reads on demand.
 * @param read called at most once, also where a client asks for several parts of the page
 */
export function lazyConnection<Node>(
  read: () => Promise<PageConnection<Node>>,
  totalCount: () => Promise<number> | number,
  totalAmount?: () => Promise<bigint>,
): LazyConnection<Node> {
  let page: Promise<PageConnection<Node>> | undefined
  const ask = () => (page ??= read())
  return {
    get edges() {
      return ask().then(({ edges }) => edges)
    },
    get pageInfo() {
      return ask().then(({ pageInfo }) => pageInfo)
    },
    totalCount,
    ...(totalAmount && { totalAmount }),
  }
}

/** The argument `first` of a list that reads forwards only. */
export const firstArg = {
  defaultValue: listDefaults.first,
  description: `Page size, 1 to ${limits.pageSizeMax}.`,
} as const

/** The argument `offset` of a list. */
export const offsetArg = {
  defaultValue: listDefaults.offset,
  description: 'Number of rows to skip. Cursors are faster on long lists.',
} as const

/**
 * Makes the types of a list in which a client pages by cursors: `<name>Connection` and `<name>Edge`.
 * @param amounts the amounts of the entries that `totalAmount` adds up; the field is left out without it
 * @param scope the scope that `totalAmount` needs beside those of the list
 */
export function connectionType<Type extends OutputType<Types>>(
  type: Type,
  name: string,
  description: string,
  amounts?: string,
  scope?: Scope,
) {
  return builder.connectionObject(
    {
      type,
      name: `${name}Connection`,
      description,
      fields: (t) => ({
        totalCount: t.int({
          description: 'Number of entries in the whole list that match its filter.',
          resolve: (page) => (page as unknown as LazyConnection<unknown>).totalCount(),
        }),
        ...(amounts !== undefined && {
          totalAmount: t.field({
            type: 'Amount',
            ...(scope && { scope: [scope] }),
            description: `Sum of the ${amounts} of all entries that match the filter, in whole XOF.`,
            resolve: (page) => totalAmountOf(page as unknown as LazyConnection<unknown>),
          }),
        }),
      }),
    },
    { name: `${name}Edge` },
  )
}

function totalAmountOf({ totalAmount }: LazyConnection<unknown>): Promise<bigint> {
  invariant(totalAmount, 'a list whose type has `totalAmount` can add up its amounts')
  return totalAmount()
}

/** A table, with the functions of Prisma that read it. */
interface Table<Row> {
  findMany(query: never): PromiseLike<Row[]>
  count(query: never): PromiseLike<number>
}

export interface Newest<Row> {
  /** The GraphQL type of the rows. */
  type: string
  args: PageArgs
  table: Table<Row>
  /** The filter of the rows that the list has. */
  where: object
  /** True if the ids of the table have 32 bits. */
  hasSmallIds?: boolean
  /** Counts the rows of the list, faster than one by one. */
  count?: () => Promise<number>
  /** Adds up the amounts of the rows of the list, in whole francs. */
  amount?: () => Promise<bigint>
  /**
   * Finds the ids between which a page is, and the rows to skip there; null where the list has no such rows.
   */
  find?: (page: PageBounds & { isByOffset: boolean }) => Promise<{ id?: object; skip: number } | null>
}

/**
 * Makes a list of the rows of a table, the newest first. It reads only those columns that the document asks
 * for.
 * @throws DomainError INVALID_INPUT that names the wrong argument
 */
export function newestFirst<Row extends { id: bigint | number }>(
  ctx: Context,
  info: GraphQLResolveInfo,
  { type, args, table, where, hasSmallIds = false, count, amount, find }: Newest<Row>,
): LazyConnection<Row> {
  const page = readPage(args)
  const selected = selectedOf(ctx, info, type)
  const isByOffset = page.after === null && page.before === null && !page.isBackward
  const read = async () => {
    const window = find ? await find({ ...page, isByOffset }) : { skip: page.skip }
    if (!window) return connect<Row>(page, [])
    const { id = {}, skip } = window
    const between = idsBetween(page, hasSmallIds) ?? {}
    const list = byOwner(where, page)
    const query = { ...selected, ...list, where: { AND: [list.where, { id }, { id: between }] }, skip }
    const rows = await table.findMany(query as never)
    return connect(page, rows.map(edgeOf))
  }
  return lazyConnection(read, count ?? (() => table.count({ where } as never) as Promise<number>), amount)
}

/**
 * Returns the columns of a list's nodes for which a document asks, in Prisma's form.
 * @param always the columns of the cursors, which are read for each document
 */
export function selectedOf(
  ctx: Context,
  info: GraphQLResolveInfo,
  typeName: string,
  always: object = { id: true },
): object {
  const paths = [['nodes'], ['edges', 'node']]
  return queryFromInfo({ context: ctx, info, typeName, paths, select: always as { id: true } })
}

/** Returns the query for a page of a relation, the newest first, with ids of 64 bits. */
export function relatedPage(args: PageArgs, where: object) {
  const page = readPage(args)
  const id = idsBetween(page, false)
  return { where: { ...where, ...(id && { id }) }, ...inOrder(page), select: { id: true } } as {
    where: object
    orderBy: { id: 'asc' | 'desc' }
    take: number
  }
}

/**
 * Makes the list of the rows that `relatedPage` found.
 * @param totalCount counts the rows of the relation
 */
export function relatedConnection<Row extends { id: bigint }>(
  args: PageArgs,
  rows: readonly Row[],
  totalCount: () => Promise<number>,
  totalAmount?: () => Promise<bigint>,
) {
  return { ...connect(readPage(args), rows.map(edgeOf)), totalCount, ...(totalAmount && { totalAmount }) }
}

/** Returns the paths at which a page shows its nodes, in the form that Pothos needs for relations. */
export const nodesOf = (type: string) =>
  ({ getType: () => type, paths: [[{ name: 'nodes' }], [{ name: 'edges' }, { name: 'node' }]] }) as never

/**
 * Returns the filter and the order of a list. Where the rows are those of one link or of one merchant, its
 * id is a range and stands in the order: then only an index by it and the id gives the order. With
 * `merchant_id = $1 ORDER BY id`, PostgreSQL may walk the ids of all merchants until it has found a page.
 */
function byOwner(where: object, page: PageBounds) {
  const { orderBy, take } = inOrder(page)
  const values = where as Readonly<Record<string, unknown>>
  const owner = ['paymentLinkId', 'merchantId'].find((field) => typeof values[field] === 'number')
  if (owner === undefined) return { where, orderBy, take }
  const own = { ...where, [owner]: { gte: values[owner], lte: values[owner] } }
  return { where: own, orderBy: [{ [owner]: orderBy.id }, orderBy], take }
}

function inOrder({ isBackward, take }: PageBounds) {
  return { orderBy: { id: isBackward ? 'asc' : 'desc' }, take } as const
}

/**
 * Returns the range of ids of a page. Prisma's own cursor would look for the row of the cursor, and its
 * answer would reveal whether that row exists, even where it belongs to another merchant.
 */
function idsBetween({ after, before }: PageBounds, areSmall: boolean): object | null {
  if (after === null && before === null) return null
  const of = (id: bigint) => (areSmall ? Math.min(Number(id), Number(smallIdMax)) : id)
  return { ...(after !== null && { lt: of(after) }), ...(before !== null && { gt: of(before) }) }
}
