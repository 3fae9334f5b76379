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

// How the lists of the schema are written: their types, their arguments, and how their rows are read.

type Types = typeof builder.$inferSchemaTypes

/** A list of which nothing is read before a client asks for it. */
export interface LazyConnection<Node> {
  readonly edges: Promise<PageConnection<Node>['edges']>
  readonly pageInfo: Promise<PageConnection<Node>['pageInfo']>
  totalCount(): Promise<number> | number
}

/** @param read is called once, however much of the page a client asks for */
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

/** What `offset` of a list means. */
export const offsetWords = 'Number of rows to skip. Cursors are faster on long lists. Default: 0.'

/** The types of a list that a client reads on from a cursor: `<name>PageConnection` and `<name>Edge`. */
export function connectionType<Type extends OutputType<Types>>(
  type: Type,
  name: string,
  description: string,
) {
  return builder.connectionObject({ type, name: `${name}Connection`, description }, { name: `${name}Edge` })
}

/** The same with `totalCount`. */
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

/** A table as Prisma reads it. */
interface Table<Row> {
  findMany(query: never): PromiseLike<Row[]>
  count(query: never): PromiseLike<number>
}

interface Newest<Row> {
  /** The GraphQL type of the rows. */
  type: string
  args: PageArgs
  table: Table<Row>
  /** Which rows the list has. */
  where: object
  /** The ids of the table have 32 bits. */
  hasSmallIds?: boolean
  /** Counts the rows faster than one by one. */
  count?: () => Promise<number>
  /** Finds a page by its offset faster than row by row; null where the list ends before it. */
  find?: (page: PageBounds) => Promise<{ id?: object; skip: number } | null>
}

/**
 * A list of the rows of a table, newest first. Of each row it reads what the document asks for.
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

/** What a document asks of the nodes of a list, as Prisma reads it; always the id, for cursors. */
export function selectedOf(ctx: Context, info: GraphQLResolveInfo, typeName: string): object {
  const paths = [['nodes'], ['edges', 'node']]
  return queryFromInfo({ context: ctx, info, typeName, paths, select: { id: true } })
}

/** The query of a relation of which each row shows a page, newest first, with ids of 64 bits. */
export function relatedPage(args: PageArgs, where: object) {
  const page = readPage(args)
  const id = idsBetween(page, false)
  return { where: { ...where, ...(id && { id }) }, ...inOrder(page), select: { id: true } } as {
    where: object
    orderBy: { id: 'asc' | 'desc' }
    take: number
  }
}

/** The rows that `relatedPage` found. */
export function relatedConnection<Row extends { id: bigint }>(args: PageArgs, rows: readonly Row[]) {
  return connect(readPage(args), rows.map(edgeOf))
}

/** Where a page names what it shows of each row: what its own relations of Pothos hand in here. */
export const nodesOf = (type: string) =>
  ({ getType: () => type, paths: [[{ name: 'nodes' }], [{ name: 'edges' }, { name: 'node' }]] }) as never

function inOrder({ isBackward, take }: PageBounds) {
  return { orderBy: { id: isBackward ? 'asc' : 'desc' }, take } as const
}

/**
 * The ids of a page. Prisma's own cursor would look for the cursor's row, and tell by the answer whether it
 * is there, also where it is another merchant's.
 */
function idsBetween({ after, before }: PageBounds, areSmall: boolean): object | null {
  if (after === null && before === null) return null
  const of = (id: bigint) => (areSmall ? Math.min(Number(id), Number(smallIdMax)) : id)
  return { ...(after !== null && { lt: of(after) }), ...(before !== null && { gt: of(before) }) }
}
