/** The page of a list that an answer has. */
export interface ListPage {
  /** The number of rows of the whole list. */
  total: number
  limit: number
  offset: number
}

/**
 * Returns the headers of a list whose `data` is a bare array: its length, and the addresses of its other
 * pages (RFC 8288). The addresses are left out where the query is too long.
 * @param address the address of the list, without parameters
 * @param query the query of the request: its filters stay as they are
 * @see docs/design/rules.md#lists
 */
export function listHeaders(
  address: string,
  query: URLSearchParams,
  { total, limit, offset }: ListPage,
): [name: string, value: string][] {
  const shift = offset % limit
  const last = total > shift ? shift + Math.floor((total - 1 - shift) / limit) * limit : 0
  const pages = [
    ['first', 0],
    ...(offset > 0 ? [['prev', Math.max(0, Math.min(offset - limit, last))] as const] : []),
    ...(offset + limit < total ? [['next', offset + limit] as const] : []),
    ['last', last],
  ] as const
  const link = ([rel, at]: (typeof pages)[number]) => {
    const there = new URLSearchParams(query)
    there.set('limit', String(limit))
    there.set('offset', String(at))
    return `<${address}?${there.toString()}>; rel="${rel}"`
  }
  return [
    ['X-Total-Count', String(total)],
    ...(String(query).length > queryLengthMax
      ? []
      : [['Link', pages.map(link).join(', ')] as [string, string]]),
  ]
}

/**
 * The longest query in these addresses. Filters are shorter; a longer query, repeated in up to four
 * addresses, would make headers larger than clients read.
 */
const queryLengthMax = 1_000
