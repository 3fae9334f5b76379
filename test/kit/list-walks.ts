import { expect } from 'vitest'
import type { TestApp, TestMerchant } from './app.ts'
import type { ListedRow, ListName } from './listed-rows.ts'

// Reads a list by pages in all ways, and compares each page with the rows that the list must have.

/** A filter and an order, in the words of GraphQL. */
export interface ListRequest {
  filter: Readonly<Record<string, unknown>>
  orderBy?: string
}

/** Any list of GraphQL that this file can read. */
export type WalkedList = ListName | 'batches'

/** A page as it was read. */
export interface PageRead {
  ids: number[]
  cursors: string[]
  hasNext: boolean
  hasPrevious: boolean
  total: number
  /** The sum of the amounts; null in a list that has none. */
  amount: number | null
}

/** Reads a page of a list. */
export type ReadPage = (page: object) => Promise<PageRead>

const kinds: Readonly<Record<WalkedList, { filter: string; isOrdered: boolean; hasAmount: boolean }>> = {
  transactions: { filter: 'TransactionFilter', isOrdered: true, hasAmount: true },
  payouts: { filter: 'PayoutFilter', isOrdered: true, hasAmount: true },
  batches: { filter: 'BatchFilter', isOrdered: true, hasAmount: true },
  paymentLinks: { filter: 'PaymentLinkFilter', isOrdered: false, hasAmount: false },
  recipients: { filter: 'RecipientFilter', isOrdered: false, hasAmount: true },
}

function documentOf(list: WalkedList): string {
  const { filter, isOrdered, hasAmount } = kinds[list]
  const taken = `filter: $filter, first: $first, after: $after, last: $last, before: $before, offset: $offset
    ${isOrdered ? ', orderBy: $orderBy' : ''}`
  const field = `${list}(${taken}) { totalCount ${hasAmount ? 'totalAmount' : ''}
    edges { cursor node { databaseId } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } }`
  const isNested = list === 'recipients'
  return `query ($filter: ${filter}, $first: Int, $after: String, $last: Int, $before: String, $offset: Int
    ${isOrdered ? ', $orderBy: ListOrder' : ''} ${isNested ? ', $batch: ID!' : ''}) {
    ${isNested ? `batch(id: $batch) { ${field} }` : field} }`
}

/** Makes the function that reads a list. @param batch the batch whose recipients are read */
export function reading(
  app: TestApp,
  shop: TestMerchant,
  list: WalkedList,
  asked: ListRequest,
  batch?: number,
): ReadPage {
  const document = documentOf(list)
  return async (page) => {
    const { body } = await app.graphql(document, { ...asked, ...page, batch }, shop.token)
    expect(body['errors'], JSON.stringify({ asked, page })).toBeUndefined()
    const { edges, pageInfo, totalCount, totalAmount } = (body['data'].batch ?? body['data'])[list]
    const cursors = edges.map(({ cursor }: { cursor: string }) => cursor)
    expect(pageInfo.startCursor).toBe(cursors.at(0) ?? null)
    expect(pageInfo.endCursor).toBe(cursors.at(-1) ?? null)
    return {
      ids: edges.map(({ node }: { node: { databaseId: number } }) => node.databaseId),
      cursors,
      hasNext: pageInfo.hasNextPage,
      hasPrevious: pageInfo.hasPreviousPage,
      total: totalCount,
      amount: totalAmount ?? null,
    }
  }
}

/**
 * Reads a list forward, backward, by offsets and between two cursors: each page must have its part of the
 * rows, say whether more rows follow, and give the exact totals.
 * @param rows the rows that the list must have, in its order
 * @param chosen two numbers from 0 to below 1 that choose the two cursors
 */
export async function checkPages(
  read: ReadPage,
  rows: readonly Pick<ListedRow, 'id' | 'amount'>[],
  size: number,
  chosen: readonly [number, number],
): Promise<void> {
  const ids = rows.map(({ id }) => id)
  const cursors = await walkForward(read, rows, size)
  await walkBackward(read, ids, size)
  for (const offset of new Set([Math.floor((chosen[0] * ids.length) / 2), ids.length])) {
    const page = await read({ first: size, offset })
    expect(page.ids).toEqual(ids.slice(offset, offset + size))
    expect(page.hasNext).toBe(offset + size < ids.length)
    expect((await read({ last: size, offset })).ids).toEqual(lastOf(ids.slice(0, ids.length - offset), size))
  }
  if (ids.length < 2) return
  const [from = 0, to = 0] = chosen.map((at) => Math.floor(at * ids.length)).toSorted((a, b) => a - b)
  const between = { after: cursors[from], before: cursors[to] }
  const inside = ids.slice(from + 1, to)
  const first = await read({ ...between, first: size })
  expect(first).toMatchObject({ ids: inside.slice(0, size), hasPrevious: true })
  expect(first.hasNext).toBe(inside.length > size)
  const last = await read({ ...between, last: size })
  expect(last).toMatchObject({ ids: lastOf(inside, size), hasNext: true })
  expect(last.hasPrevious).toBe(inside.length > size)
  expect((await read({ ...between, first: size, offset: 1 })).ids).toEqual(inside.slice(1, size + 1))
}

const lastOf = <T>(all: readonly T[], size: number) => all.slice(Math.max(0, all.length - size))

async function walkForward(
  read: ReadPage,
  rows: readonly Pick<ListedRow, 'id' | 'amount'>[],
  size: number,
): Promise<string[]> {
  const total = { total: rows.length, amount: rows.reduce((sum, { amount }) => sum + amount, 0) }
  const cursors: string[] = []
  for (let at = 0; ; at += size) {
    const page: PageRead = await read({ first: size, ...(at > 0 && { after: cursors.at(-1) }) })
    expect(page.ids).toEqual(rows.slice(at, at + size).map(({ id }) => id))
    expect(page).toMatchObject({ hasNext: at + size < rows.length, hasPrevious: at > 0, total: total.total })
    if (page.amount !== null) expect(page.amount).toBe(total.amount)
    cursors.push(...page.cursors)
    if (!page.hasNext) return cursors
  }
}

async function walkBackward(read: ReadPage, ids: readonly number[], size: number): Promise<void> {
  for (let end = ids.length, before: string | undefined; ; end -= size) {
    const page: PageRead = await read({ last: size, ...(before !== undefined && { before }) })
    expect(page.ids).toEqual(lastOf(ids.slice(0, Math.max(0, end)), size))
    expect(page).toMatchObject({ hasPrevious: end > size, hasNext: before !== undefined })
    if (!page.hasPrevious) return
    before = page.cursors[0]
  }
}

/** Writes a filter and an order as the parameters of an address. */
export function parametersOf({ filter, orderBy }: ListRequest): URLSearchParams {
  const given: [string, unknown][] = Object.entries({
    ...filter,
    ...(orderBy && { orderBy: orderBy.toLowerCase() }),
  })
  return new URLSearchParams(
    given.map(([name, value]) => [
      name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      Array.isArray(value) ? value.map(String).join().toLowerCase() : String(value),
    ]),
  )
}

/** Reads pages in REST, each by its offset: they must be those of the rows, with the exact total. */
export async function checkRest(
  app: TestApp,
  { token }: TestMerchant,
  list: 'transactions' | 'payouts' | 'paymentLinks',
  asked: ListRequest,
  ids: readonly number[],
  limit: number,
): Promise<void> {
  const path = list === 'paymentLinks' ? 'payment-links' : list
  for (const offset of new Set([0, Math.max(0, ids.length - limit - 1)])) {
    const query = parametersOf(asked)
    query.set('limit', String(limit))
    query.set('offset', String(offset))
    const { status, body, headers } = await app.rest('GET', `/${path}?${query}`, { token })
    expect(status, JSON.stringify(body)).toBe(200)
    const { data } = body
    const found: { id: number }[] = Array.isArray(data) ? data : data[list]
    expect(found.map(({ id }) => id)).toEqual(ids.slice(offset, offset + limit))
    if (Array.isArray(data)) expect(headers.get('x-total-count')).toBe(String(ids.length))
    else {
      const more = offset + limit < ids.length
      expect(data.pagination).toEqual({ total: ids.length, limit, offset, has_more: more })
    }
  }
}

/** Reads the ids of an export, in its order. */
export async function exportedIds(
  app: TestApp,
  { token }: TestMerchant,
  list: 'transactions' | 'payouts',
  asked: ListRequest,
): Promise<number[]> {
  const answer = await fetch(`${app.url}/merchant/api/exports/${list}.csv?${parametersOf(asked)}`, {
    headers: { Authorization: `Bearer ${token}` },
  })
  expect(answer.status).toBe(200)
  const [, ...lines] = (await answer.text()).trimEnd().split('\r\n')
  return lines.map((line) => Number(/^\d+/.exec(line)?.[0]))
}
