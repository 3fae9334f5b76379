import type { IncomingMessage } from 'node:http'
import { z } from 'zod'
import type { Context } from '../../context.ts'
import { pageInput, readInput, readTogether, wholeNumber } from '../../shared/input.ts'
import type { ListPage } from './list-headers.ts'
import { type FormFields, query, type RestRequest } from './shape.ts'

/** A REST path, the operation of `documents.ts` that it runs, and how the two fit together. */
export interface Route {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Below `/merchant/api`; a part in braces is a parameter. */
  path: string
  /** Status of a success. */
  status: 200 | 201 | 202
  operation: string
  /** The operation's variables. @throws DomainError INVALID_INPUT */
  variables: (request: RestRequest) => object | Promise<object>
  /** Left out, that of every body. */
  bodyMaxBytes?: number
  /** Its body is a form, and read by this. @throws DomainError */
  form?: (ctx: Context, message: IncomingMessage) => Promise<FormFields>
  /** The envelope's `data` of the operation's root field; left out, the field itself. */
  data?: (result: never, variables: never, request: RestRequest) => unknown
  /** The answer is `data` itself, without an envelope (specification: GET /payment/status/{reference}). */
  bare?: true
  /** A page of any origin may read the answer: it is public, and a payer's browser polls it. */
  anyOrigin?: true
  /** The operation counts its callers itself. */
  hasOwnLimit?: true
  /** The operation is counted by no limit: balancers ask all the time. */
  isUncounted?: true
  /** The page of a list whose `data` is a bare array: headers tell of the rest. */
  list?: (result: never, variables: never) => ListPage
  /** Where the new thing is, below `/merchant/api`: the `Location` of the answer. */
  location?: (result: never) => string | null
  /** The status depends on the answer. */
  statusOf?: (result: never, variables: never) => number
  /** What the envelope says beside `data`; nothing where it is null. */
  message?: (result: never, variables: never) => string | null
}

/** A list whose `data` is a bare array. */
export const bareList = {
  data: (result: { nodes: readonly object[] }) => result.nodes,
  list: (result: { totalCount: number }, variables: Omit<ListPage, 'total'>) => ({
    ...variables,
    total: result.totalCount,
  }),
}

/** The id in the path. @throws DomainError INVALID_INPUT */
export function idOf(request: RestRequest): { id: number } {
  return readInput(z.object({ id: wholeNumber(1, Number.MAX_SAFE_INTEGER) }), request.params)
}

/** Which page of a list, and of what. @throws DomainError INVALID_INPUT */
export async function pageWish(request: RestRequest, filterInput: z.ZodType): Promise<object> {
  const [page, filter] = await readTogether(
    () => query(request, pageInput),
    () => query(request, filterInput),
  )
  return { ...page, filter }
}

/** REST leaves out what GraphQL gives as null. */
export function withoutNulls(result: object): object {
  return Object.fromEntries(Object.entries(result).filter(([, value]) => value !== null))
}

/** A page under its own name, with its place in the list. */
export function pageOf(name: string, nodeData: (node: object) => object = (node) => node) {
  return (
    { totalCount: total, nodes }: { totalCount: number; nodes: readonly object[] },
    { limit, offset }: { limit: number; offset: number },
  ): object => ({
    [name]: nodes.map(nodeData),
    pagination: { total, limit, offset, has_more: offset + nodes.length < total },
  })
}
