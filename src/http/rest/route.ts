import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { z } from 'zod'
import type { Context } from '../../context.ts'
import {
  camelCase,
  invalidInput,
  oneOf,
  pageInput,
  readInput,
  readTogether,
  snakeCase,
  wholeNumber,
} from '../../shared/input.ts'
import type { ListPage } from './list-headers.ts'
import { DomainError, type FieldProblem } from '../../shared/errors.ts'
import { takesMany } from '../../shared/filter.ts'
import { listOrders } from '../../shared/page.ts'
import { isJson, jsonNameLengthMax, readJson, readLargeJson } from '../../shared/json-body.ts'

/**
 * A route: a REST path, the operation of `documents.ts` that it runs, and the functions that connect the two.
 */
export interface RestRoute {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** The path below `/merchant/api`; a part in braces is a parameter. */
  path: string
  status: 200 | 201 | 202
  operation: string
  /** Reads the operation's variables. @throws DomainError INVALID_INPUT */
  variables: (request: RestRequest) => object | Promise<object>
  /** The largest body; by default `limits.bodyMaxBytes`. */
  bodyMaxBytes?: number
  /** True if the operation can be a dry run. */
  hasDryRun?: true
  /** Reads the body, where it is a form. @throws DomainError */
  form?: (ctx: Context, message: IncomingMessage) => Promise<FormFields>
  /**
   * Makes the envelope's `data` from the value of the operation's root field; by default that value itself.
   */
  data?: (result: never, variables: never, request: RestRequest) => unknown
  /** True if the answer is `data` itself, without an envelope (see docs/design/rules.md#payment-status). */
  bare?: true
  /** True if a web page of any origin may read the answer: it is public, and a payer's browser polls it. */
  anyOrigin?: true
  /** True if the operation counts its callers, so that the handler does not. */
  hasOwnLimit?: true
  /** True if no rate limit counts the operation: load balancers call it all the time. */
  isUncounted?: true
  /** The page of a list whose `data` is a bare array: headers describe the rest of the list. */
  list?: (result: never, variables: never) => ListPage
  /** The address of the new object, below `/merchant/api`, for the header `Location`. */
  location?: (result: never) => string | null
  /** The status, where it depends on the answer. */
  statusOf?: (result: never, variables: never) => number
  /** The message of the envelope, beside `data`; none where it is null. */
  message?: (result: never, variables: never) => string | null
}

/** The functions of a list whose `data` is a bare array. */
export const bareList = {
  data: (result: { nodes: readonly object[] }) => result.nodes,
  list: (result: { totalCount: number }, variables: Omit<ListPage, 'total'>) => ({
    ...variables,
    total: result.totalCount,
  }),
}

/** Reads the id in the path. @throws DomainError INVALID_INPUT */
export function idOf(request: RestRequest): { id: number } {
  return readInput(z.object({ id: wholeNumber(1, Number.MAX_SAFE_INTEGER) }), request.params)
}

/** A page in an order of its own: `order_by=amount_desc`. */
export const orderedPageInput = pageInput.extend({ orderBy: oneOf(listOrders).optional() })

/** Reads the page and the filter of a list from the query. @throws DomainError INVALID_INPUT */
export async function pageOptions(
  request: RestRequest,
  filterInput: z.ZodObject,
  input: z.ZodObject = pageInput,
): Promise<object> {
  const [page, filter] = await readTogether(
    () => query(request, input),
    () => query(request, filterInput),
  )
  return { ...page, filter }
}

/** Removes the nulls of an object: REST leaves out a field that is null in GraphQL. */
export function withoutNulls(result: object): object {
  return Object.fromEntries(Object.entries(result).filter(([, value]) => value !== null))
}

/** Makes a function that writes a page of a list under this name, with its position in the list. */
export function pageOf(name: string, nodeData: (node: object) => object = (node) => node) {
  return (
    { totalCount: total, nodes }: { totalCount: number; nodes: readonly object[] },
    { limit, offset }: { limit: number; offset: number },
  ): object => ({
    [name]: nodes.map(nodeData),
    pagination: { total, limit, offset, has_more: offset + nodes.length < total },
  })
}

/** A request as the functions of a route see it. */
export interface RestRequest {
  params: Readonly<Record<string, string>>
  query: URLSearchParams
  headers: IncomingHttpHeaders
  /** Whether the operation can be a dry run. */
  hasDryRun: boolean
  /** The raw body; empty where there is none, null where it is too large. */
  body: Buffer | null
  /** The content of a form, in place of a body. */
  form?: FormFields | undefined
  /** The JSON of the body, once it was read: its names say what a missing field was meant to be. */
  sent?: unknown
}

/** The content of a form with a file, as the fields of a JSON body. */
export interface FormFields {
  fields: Readonly<Record<string, unknown>>
  /** Returns the problem with its place in the file. */
  locate: (problem: FieldProblem) => FieldProblem
  /** The warnings about the file that the answer shows. */
  warnings: readonly FieldProblem[]
}

/**
 * Reads the body under the schema's names and checks it by the verb's own rules. Unknown fields are ignored.
 * @throws DomainError INVALID_INPUT that lists every problem, UNSUPPORTED_MEDIA_TYPE
 */
export function body<T extends z.ZodType>(request: RestRequest, schema: T): z.output<T> {
  return readInput(schema, readObject(request))
}

/**
 * Reads the body of a change. Null leaves a field as it is, because clients send it for fields that they do
 * not set; GraphQL refuses it.
 * @param removable the fields that null empties
 * @throws DomainError INVALID_INPUT that lists every problem, UNSUPPORTED_MEDIA_TYPE
 */
export function changeBody<T extends z.ZodType>(
  request: RestRequest,
  schema: T,
  removable: readonly string[] = [],
): z.output<T> {
  const given = Object.entries(readObject(request))
  return readInput(
    schema,
    Object.fromEntries(given.filter(([name, value]) => value !== null || removable.includes(name))),
  )
}

/** Reads a body that may be large, without delaying other requests. */
export async function largeBody<T extends z.ZodType>(request: RestRequest, schema: T): Promise<z.output<T>> {
  const bytes = jsonOf(request)
  return readInput(schema, fieldsOf(request, bytes ? await readLargeJson(bytes) : undefined))
}

/**
 * Reads the parameters of the address under the schema's names. A list takes the values of all parameters of
 * its name. Another parameter that occurs twice is refused: one reader would take the first value, another
 * the last.
 * @throws DomainError INVALID_INPUT
 */
export function query<T extends z.ZodObject>(
  { query: sent }: Pick<RestRequest, 'query'>,
  schema: T,
): z.output<T> {
  const fields = Object.entries(schema.shape).flatMap(([name, field]) => {
    const values = sent.getAll(snakeCase(name))
    if (values.length > 1 && !takesMany(field)) throw occursTwice(snakeCase(name))
    return values.length === 0 ? [] : [[name, values.join(',')]]
  })
  return readInput(schema, Object.fromEntries(fields))
}

function occursTwice(field: string): DomainError {
  return invalidInput([{ field, message: 'occurs more than once' }])
}

/**
 * Reads the fields of the body under camelCase names; without a body, none.
 * @throws DomainError INVALID_INPUT, UNSUPPORTED_MEDIA_TYPE, BODY_TOO_LARGE
 */
export function readObject(request: RestRequest): Readonly<Record<string, unknown>> {
  const bytes = jsonOf(request)
  return fieldsOf(request, bytes ? readJson(bytes) : undefined)
}

function fieldsOf(
  request: RestRequest,
  json: unknown = request.form?.fields ?? {},
): Readonly<Record<string, unknown>> {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) {
    throw new DomainError('INVALID_INPUT', 'The request body must be a JSON object.')
  }
  checkDryRun(request, Object.keys(json))
  request.sent = json
  return inSchemaWords(Object.entries(json))
}

/**
 * Checks the fields or parameters of a write for a dry run that it would not be: under another spelling, or
 * of an operation that has none. Any other unknown field is ignored, but without this one money would move.
 * @throws DomainError INVALID_INPUT
 */
export function checkDryRun({ hasDryRun }: Pick<RestRequest, 'hasDryRun'>, names: Iterable<string>): void {
  const meant = [...names].filter((name) => name.toLowerCase().replaceAll(/[^a-z]/g, '') === 'dryrun')
  if (meant.length === 0) return
  const refuse = (message: string) => invalidInput([{ field: 'dry_run', message }])
  if (!hasDryRun) throw refuse('is not possible: this request has no dry run')
  const wrong = meant.find((name) => name !== 'dry_run')?.slice(0, jsonNameLengthMax)
  if (wrong !== undefined) throw refuse(`must be written dry_run, not ${JSON.stringify(wrong)}`)
}

/**
 * Returns the fields under camelCase names. REST accepts only snake_case names: `customerPhone` is an unknown
 * field there.
 */
export function inSchemaWords<T>(entries: readonly (readonly [string, T])[]): Record<string, T> {
  return Object.fromEntries(
    entries
      .filter(([name]) => name.length <= jsonNameLengthMax && snakeCase(name) === name)
      .map(([name, value]) => [camelCase(name), value]),
  )
}

/** Returns the bytes of a body of JSON; null for a form or no body. @throws DomainError */
function jsonOf({ body: bytes, headers }: RestRequest): Buffer | null {
  if (bytes === null) throw new DomainError('BODY_TOO_LARGE')
  if (bytes.length === 0) return null
  const { 'content-type': type = 'application/json', 'content-encoding': encoding } = headers
  if (!isJson(type, encoding)) throw new DomainError('UNSUPPORTED_MEDIA_TYPE')
  return bytes
}
