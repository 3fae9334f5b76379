import type { z } from 'zod'
import type { Context } from '../context.ts'
import { limits } from '../shared/limits.ts'

/** What stands in a field of a table. */
export type ExportCell = string | number | bigint | boolean | Date | null

export interface Column {
  name: string
  /** Whatever somebody typed can stand in it. */
  isText: boolean
}

/** A table of what a merchant has, as long as it may be. */
export interface Export {
  /** The GraphQL type of its rows. Its access rule in the schema says who may fetch the table. */
  holds: string
  /** The wishes of its address. */
  input: z.ZodType
  columns: readonly Column[]
  /**
   * Its rows, by pages: each is read when it is asked for, on behalf of whoever asks.
   * @throws DomainError whatever its wishes are refused for, before the first page
   */
  pages(ctx: Context, options: unknown): AsyncGenerator<(readonly ExportCell[])[], void>
}

/** What a table is made of. */
interface Making<Options, Row> {
  holds: string
  input: z.ZodType<Options>
  /** Its columns, and how the field of a row is found. */
  cells: Readonly<Record<string, (row: Row) => ExportCell>>
  /** Columns of what somebody typed. */
  texts: readonly string[]
  pages: (ctx: Context, options: Options) => AsyncGenerator<readonly Row[], void>
}

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

/** All rows of a list by pages, in the order in which `read` gives them. */
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
