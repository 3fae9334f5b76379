import { invalidInput } from '../shared/input.ts'
import { limits } from '../shared/limits.ts'
import { smallIdMax } from './ids.ts'

/** The paging arguments of a list. */
interface Page {
  first?: number | null | undefined
  last?: number | null | undefined
  offset?: number | null | undefined
}

/**
 * Judges the paging arguments of a list: a page has 1 to 100 items, the offset is 0 or more.
 * @returns the rows to pass over
 * @throws DomainError INVALID_INPUT that names the argument
 */
export function checkPage({ first, last, offset }: Page): number {
  const size = `must be from 1 to ${limits.pageSizeMax}`
  const outside = (value: number | null | undefined) =>
    value != null && (value < 1 || value > limits.pageSizeMax)
  const problems = [
    ...(outside(first) ? [{ field: 'first', message: size }] : []),
    ...(first != null && last != null ? [{ field: 'last', message: 'and first exclude each other' }] : []),
    ...(outside(last) ? [{ field: 'last', message: size }] : []),
    ...(offset != null && (offset < 0 || offset > limits.offsetMax)
      ? [{ field: 'offset', message: `must be from 0 to ${limits.offsetMax}` }]
      : []),
  ]
  if (problems.length > 0) throw invalidInput(problems)
  return offset ?? 0
}

/**
 * The ids behind a cursor, newest first. Prisma would look for the cursor's own row, and tell by the answer
 * whether it is there, also where it is another merchant's.
 * @throws DomainError INVALID_INPUT
 */
export function beyond(
  cursor: { id?: unknown } | undefined,
  take: number,
): { gt: bigint } | { lt: bigint } | null {
  if (!cursor) return null
  const given = String(cursor.id)
  if (!/^\d{1,18}$/.test(given)) {
    const field = take < 0 ? 'before' : 'after'
    throw invalidInput([{ field, message: 'must be a cursor that this service gave' }])
  }
  const id = BigInt(given)
  return take < 0 ? { gt: id } : { lt: id }
}

/** The arguments of a list that is read on from a cursor, newest first. */
interface NewestPage {
  first?: number | null | undefined
  after?: string | null | undefined
}

/**
 * A page of what a row has, and one more that tells whether there are others; newest first.
 * @throws DomainError INVALID_INPUT
 */
export function newestOf({ first, after }: NewestPage) {
  checkPage({ first })
  const id = after == null ? null : beyond({ id: after }, 1)
  return {
    where: { ...(id && { id }) },
    orderBy: { id: 'desc' },
    take: (first ?? limits.pageSizeDefault) + 1,
    ...needed,
  } as const
}

/** Cursors are made of the id, also where a document asks for no field of a node; of no concern to types. */
const needed: object = { select: { id: true } }

/** The rows that `newestOf` found, as a connection has them. Its cursors are ids. */
export function connectionOf<Row extends { id: bigint }>(rows: readonly Row[], { first, after }: NewestPage) {
  const take = first ?? limits.pageSizeDefault
  const edges = rows.slice(0, take).map((node) => ({ cursor: String(node.id), node }))
  return {
    edges,
    pageInfo: {
      hasNextPage: rows.length > take,
      hasPreviousPage: after != null,
      startCursor: edges.at(0)?.cursor ?? null,
      endCursor: edges.at(-1)?.cursor ?? null,
    },
  }
}

/** Where a page names what it shows of each: what its own relations of Pothos hand in here. */
export const nodesOf = (type: string) =>
  ({ getType: () => type, paths: [[{ name: 'nodes' }], [{ name: 'edges' }, { name: 'node' }]] }) as never

/** The same of a table whose ids have 32 bits: what is beyond them lies behind them all. */
export function behind(...page: Parameters<typeof beyond>): { gt?: number; lt?: number } | null {
  const ids = beyond(...page)
  return ids && Object.fromEntries(Object.entries(ids).map(([way, id]) => [way, smallId(id)]))
}

function smallId(id: bigint): number {
  return Math.min(Number(id), Number(smallIdMax))
}
