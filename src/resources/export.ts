import type { z } from 'zod'
import type { Context } from '../context.ts'
import { type ListedTable, type Search, walkIds } from '../database/find-rows.ts'
import { limits } from '../shared/limits.ts'

export type ExportCell = string | number | bigint | boolean | Date | null

export interface Column {
  name: string
  /** True if the column holds text that a person typed: a cell may then look like a formula. */
  isText: boolean
}

/** A table of a merchant's records for download, of any length. */
export interface Export {
  /** The GraphQL type of its rows. Its access rule in the schema says who may fetch the table. */
  holds: string
  /** The schema of the options in the query string. */
  input: z.ZodObject
  columns: readonly Column[]
  /**
   * Reads the rows page by page, on behalf of the caller. A page is read only when the consumer asks for it.
   * @throws DomainError before the first page, where the options are not valid
   */
  pages(ctx: Context, options: unknown): AsyncGenerator<(readonly ExportCell[])[], void>
}

/** The parts from which `makeExport` builds a table. */
interface Making<Options, Row> {
  holds: string
  input: z.ZodObject & z.ZodType<Options>
  /** The columns by name, each with the function that reads its cell from a row. */
  cells: Readonly<Record<string, (row: Row) => ExportCell>>
  /** The names of the columns that hold text that a person typed. */
  texts: readonly string[]
  pages: (ctx: Context, options: Options) => AsyncGenerator<readonly Row[], void>
}

/** Builds a table whose cells are read from typed rows. */
export function makeExport<Options, Row>({
  holds,
  input,
  cells,
  texts,
  pages,
}: Making<Options, Row>): Export {
  const readers = Object.values(cells)
  return {
    holds,
    input,
    columns: Object.keys(cells).map((name) => ({ name, isText: texts.includes(name) })),
    async *pages(ctx, options) {
      for await (const rows of pages(ctx, options as Options)) {
        yield rows.map((row) => readers.map((cell) => cell(row)))
      }
    },
  }
}

/** A filter of a list, with the search that Prisma cannot express. */
interface Searched {
  table: ListedTable
  /** The condition of the filter without its search. */
  where: { merchantId: number }
  search: Search | null
}

/** Returns Prisma's condition of the page after an id, oldest first, for a filter that may have a search. */
export async function pageAfter(
  ctx: Context,
  { table, where, search }: Searched,
  after: bigint,
  take: number,
) {
  if (!search) return { AND: [where, { id: { gt: after } }] }
  const position = { after: { amount: null, id: after }, before: null, isBackward: false, skip: 0, take }
  const page = { table, where, search, order: 'created_at_asc', ...position } as const
  const ids = await walkIds(ctx.database.merchantPool, page)
  // Without the filter: a row that has just left its status would make the page as short as the last one.
  return { merchantId: where.merchantId, id: { in: ids } }
}

/** Yields all rows of a list page by page, in the order in which `read` returns them. */
export async function* pagesOf<Row>(
  read: (after: Row | null, take: number) => Promise<readonly Row[]>,
): AsyncGenerator<readonly Row[], void> {
  let after: Row | null = null
  for (;;) {
    const rows: readonly Row[] = await read(after, limits.exportPageRows)
    yield rows
    if (rows.length < limits.exportPageRows) return
    after = rows.at(-1) ?? null
  }
}
