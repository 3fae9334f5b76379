import type { OutputType } from '@pothos/core'
import { queryFromInfo } from '@pothos/plugin-prisma'
import type { GraphQLResolveInfo } from 'graphql'
import type { Context } from '../context.ts'
import { smallIdMax } from '../shared/ids.ts'
import {
  type PageConnection,
  connect,
  edgeOf,
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
}

/**
 * Makes a list that reads on demand.
 * @param read called at most once, also where a client asks for several parts of the page
 */
export function lazyConnection<Node>(
  read: () => Promise<PageConnection<Node>>,
  totalCount: () => Promise<number> | number,
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
  }
}

/** The description of a list's argument `offset`. */
export const offsetWords = 'Number of rows to skip. Cursors are faster on long lists. Default: 0.'

/** Makes the types of a list in which a client pages by cursors: `<name>Connection` and `<name>Edge`. */
export function connectionType<Type extends OutputType<Types>>(
  type: Type,
  name: string,
  description: string,
) {
  return builder.connectionObject({ type, name: `${name}Connection`, description }, { name: `${name}Edge` })
}

/** Makes the types as `connectionType` does, with `totalCount`. */
export function countedConnectionType<Type extends OutputType<Types>>(
  type: Type,
  name: string,
  description: string,
) {
  return builder.connectionObject(
    {
      type,
      name: `${name}Connection`,
      description,
      fields: (t) => ({
        totalCount: t.int({
          description: 'Number of entries in the whole list.',
          resolve: (page) => (page as unknown as LazyConnection<unknown>).totalCount(),
        }),
      }),
    },
    { name: `${name}Edge` },
  )
}

/** A table, with the functions of Prisma that read it. */
interface Table<Row> {
  findMany(query: never): PromiseLike<Row[]>
  count(query: never): PromiseLike<number>
}

interface Newest<Row> {
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
  /** Finds a page by its offset faster than row by row; null where the list ends before the offset. */
  find?: (page: PageBounds) => Promise<{ id?: object; skip: number } | null>
}

/**
 * Makes a list of the rows of a table, the newest first. It reads only those columns that the document asks
 * for.
 * @throws DomainError INVALID_INPUT that names the wrong argument
 */
export function newestFirst<Row extends { id: bigint | number }>(
  ctx: Context,
  info: GraphQLResolveInfo,
  { type, args, table, where, hasSmallIds = false, count, find }: Newest<Row>,
): LazyConnection<Row> {
  const page = readPage(args)
  const selected = selectedOf(ctx, info, type)
  const isByOffset = page.after === null && page.before === null && !page.isBackward
  const read = async () => {
    const window =
      isByOffset && find ? await find(page) : { id: idsBetween(page, hasSmallIds), skip: page.skip }
    if (!window) return connect<Row>(page, [])
    const { id, skip } = window
    const { take, orderBy } = inOrder(page)
    const query = { ...selected, where: id ? { AND: [where, { id }] } : where, orderBy, take, skip }
    const rows = await table.findMany(query as never)
    return connect(page, rows.map(edgeOf))
  }
  return lazyConnection(read, count ?? (() => table.count({ where } as never) as Promise<number>))
}

/**
 * Returns the columns of a list's nodes for which a document asks, in Prisma's form; always with the id, for
 * cursors.
 */
export function selectedOf(ctx: Context, info: GraphQLResolveInfo, typeName: string): object {
  const paths = [['nodes'], ['edges', 'node']]
  return queryFromInfo({ context: ctx, info, typeName, paths, select: { id: true } })
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

/** Makes the list of the rows that `relatedPage` found. */
export function relatedConnection<Row extends { id: bigint }>(args: PageArgs, rows: readonly Row[]) {
  return connect(readPage(args), rows.map(edgeOf))
}

/** Returns the paths at which a page shows its nodes, in the form that Pothos needs for relations. */
export const nodesOf = (type: string) =>
  ({ getType: () => type, paths: [[{ name: 'nodes' }], [{ name: 'edges' }, { name: 'node' }]] }) as never

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
