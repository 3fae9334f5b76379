/** Which page of a list an answer is. */
export interface ListPage {
  /** Rows of the whole list. */
  total: number
  limit: number
  offset: number
}

/**
 * What tells of a list whose `data` is a bare array: how long it is, and where its other pages are (RFC
 * 8288), but for an address that is longer than any of ours.
 * @param address of the list, without parameters
 * @param query of the request: filters stay as they are
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

/** Filters are shorter. What is longer four times over would fill more headers than clients read. */
const queryLengthMax = 1_000
