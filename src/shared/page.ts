import { invalidInput } from './input.ts'
import { limits } from './limits.ts'

// The paging of every list. A cursor is the position of its row in the order of the list, most often the id
// of the row.

/** The paging arguments of a list; each list has some of them. */
export interface PageArgs {
  first?: number | null | undefined
  after?: string | null | undefined
  last?: number | null | undefined
  before?: string | null | undefined
  offset?: number | null | undefined
}

/** The orders of a list. */
export const listOrders = ['created_at_desc', 'created_at_asc', 'amount_desc', 'amount_asc'] as const
export type ListOrder = (typeof listOrders)[number]

/** The arguments of a list where a client leaves them out or gives null. */
export const listDefaults = {
  first: limits.pageSizeDefault,
  offset: 0,
  orderBy: 'created_at_desc',
} as const satisfies PageArgs & { orderBy: ListOrder }

/** The rows of a list that a page needs. */
export interface PageBounds<Cursor = bigint> {
  /** Only rows after this position are read. */
  after: Cursor | null
  /** Only rows before this position are read. */
  before: Cursor | null
  /** Whether to read from the end of the list towards its beginning. */
  isBackward: boolean
  /** How many rows to skip. */
  skip: number
  /** How many rows to show. */
  size: number
  /** How many rows to read: one more than are shown, to learn whether more exist. */
  take: number
}

/** A page in the form of a GraphQL connection. */
export interface PageConnection<Node> {
  edges: { cursor: string; node: Node }[]
  pageInfo: {
    hasNextPage: boolean
    hasPreviousPage: boolean
    startCursor: string | null
    endCursor: string | null
  }
}

/**
 * Reads the paging arguments of a list with ids as cursors: 1 to 100 rows, by default 20, from the beginning
 * of the list; from its end with `last`. `after` and `before` may come together. A client that sends `last`
 * alone also sends the default of `first`: then `last` counts.
 * @throws DomainError INVALID_INPUT that names each wrong argument
 */
export function readPage(args: PageArgs): PageBounds {
  return readPageOf(args, idOf)
}

/**
 * Reads the paging arguments of a list with cursors of its own form.
 * @param readCursor reads a cursor; it returns null for a cursor that the service never gave
 * @throws DomainError INVALID_INPUT
 */
export function readPageOf<Cursor>(
  args: PageArgs,
  readCursor: (cursor: string) => Cursor | null,
): PageBounds<Cursor> {
  const { first, last, offset, after, before } = args
  const problems = problemsOf(args)
  const read = (field: 'after' | 'before', cursor: string | null | undefined) => {
    if (cursor == null) return null
    const position = readCursor(cursor)
    if (position === null)
      problems.push({ field, message: 'must be a cursor from an answer of this service' })
    return position
  }
  const positions = { after: read('after', after), before: read('before', before) }
  if (problems.length > 0) throw invalidInput(problems)
  const size = last ?? first ?? listDefaults.first
  const isBackward = last != null
  return { ...positions, isBackward, skip: offset ?? listDefaults.offset, size, take: size + 1 }
}

function problemsOf({ first, last, offset }: PageArgs) {
  const size = `must be from 1 to ${limits.pageSizeMax}`
  const outside = (value: number | null | undefined) =>
    value != null && (value < 1 || value > limits.pageSizeMax)
  return [
    ...(outside(first) ? [{ field: 'first', message: size }] : []),
    ...(first != null && first !== listDefaults.first && last != null
      ? [{ field: 'last', message: 'cannot be combined with first' }]
      : []),
    ...(outside(last) ? [{ field: 'last', message: size }] : []),
    ...(offset != null && (offset < 0 || offset > limits.offsetMax)
      ? [{ field: 'offset', message: `must be from 0 to ${limits.offsetMax}` }]
      : []),
  ]
}

/** Reads a cursor that is an id; null for any other text. */
export function idOf(cursor: string): bigint | null {
  return /^\d{1,18}$/.test(cursor) ? BigInt(cursor) : null
}

/** Makes the edge of a row, in a list with ids as cursors. */
export function edgeOf<Node extends { id: bigint | number }>(node: Node): { cursor: string; node: Node } {
  return { cursor: String(node.id), node }
}

/**
 * Makes the requested page from the edges that were read.
 * @param edges at most `page.take` edges, in the order in which they were read
 */
export function connect<Node>(
  { after, before, isBackward, size }: PageBounds<unknown>,
  edges: readonly { cursor: string; node: Node }[],
): PageConnection<Node> {
  const shown = edges.slice(0, size)
  if (isBackward) shown.reverse()
  const hasMore = edges.length > size
  return {
    edges: shown,
    pageInfo: {
      hasNextPage: isBackward ? before !== null : hasMore,
      hasPreviousPage: isBackward ? hasMore : after !== null,
      startCursor: shown.at(0)?.cursor ?? null,
      endCursor: shown.at(-1)?.cursor ?? null,
    },
  }
}
