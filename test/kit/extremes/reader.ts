import { getNamedType, type GraphQLNamedType, type GraphQLOutputType, isObjectType } from 'graphql'
import { expect } from 'vitest'
import { routes } from '../../../src/http/rest/routes.ts'
import { networkEntry } from '../../../src/shared/ip-whitelist.ts'
import { parseContactPhone, parsePhone } from '../../../src/shared/phone.ts'
import { selectionOf } from '../whole-selections.ts'
import { rootFields, snakeCase } from './input-fields.ts'
import type { Written, writerOn } from './writer.ts'

// Reads every list of the API at both doors, and compares the rows with what was written.

type Send = ReturnType<typeof writerOn>['send']
/** Rows by `Type:id`. */
type Rows = Map<string, unknown>

/** The lists of the schema: the fields of the query that give a connection, by the type of their rows. */
export const lists = Object.values(rootFields('query')).flatMap((field) => {
  const type = getNamedType(field.type)
  if (!isObjectType(type) || !type.name.endsWith('Connection')) return []
  const row: GraphQLNamedType = getNamedType(type.getFields()['nodes']?.type as GraphQLOutputType)
  return [{ name: field.name, row }]
})

/** Few enough that the rows with all their relations stay within the bound of one operation. */
const pageRows = 10

/** Reads every connection of the schema to its end, each row with all its fields and relations. */
export async function readConnections(send: Send, token: string): Promise<Rows> {
  const rows: Rows = new Map()
  for (const { name, row } of lists) {
    const filter = name === 'paymentLinks' ? 'filter: { activeOnly: false },' : ''
    const query = `query ($after: String) { list: ${name}(${filter} first: ${pageRows}, after: $after) {
      totalCount pageInfo { hasNextPage endCursor } nodes ${selectionOf(row, 1, 'all')} } }`
    for (let after: string | null = null; ; ) {
      const body = JSON.stringify({ query, variables: { after } })
      const answer = await send('POST', '/graphql', { token, body })
      expect([answer.status, answer.body['errors']], name).toEqual([200, undefined])
      const { nodes, pageInfo } = answer.body['data'].list
      for (const node of nodes) rows.set(`${node['__typename']}:${node.databaseId ?? node.id}`, node)
      if (!pageInfo.hasNextPage) break
      after = pageInfo.endCursor
    }
  }
  return rows
}

/** Reads every list of REST to its end, and then each row that was written by its own address. */
export async function readRest(send: Send, token: string, written: readonly Written[]): Promise<Rows> {
  const rows: Rows = new Map()
  const read = async (path: string) => {
    const { status, body } = await send('GET', `/merchant/api${path}`, { token })
    expect([status, path, body.message]).toEqual([200, path, undefined])
    return body.data
  }
  for (const { path, method, operation } of routes) {
    const list = lists.find(({ name }) => name === operation.charAt(0).toLowerCase() + operation.slice(1))
    if (method !== 'GET' || !list) continue
    const more = list.name === 'paymentLinks' ? '&active_only=false' : ''
    for (let offset = 0; ; offset += 100) {
      const data = await read(`${path}?limit=100&offset=${offset}${more}`)
      const page: { id: number }[] = Array.isArray(data) ? data : (Object.values(data)[0] as never)
      for (const row of page) rows.set(`${list.row.name}:${row.id}`, row)
      if (page.length < 100) break
    }
  }
  const own = new Set(written.map(({ type, id }) => `${type} ${id}`))
  for (const name of own) {
    const [type = '', id = ''] = name.split(' ')
    const path = routes.find(
      (route) => route.method === 'GET' && route.operation === type && route.path.endsWith('{id}'),
    )?.path
    const under = path?.replace('{id}', id)
    if (under === undefined) continue
    const recipients = type === 'Batch' ? await read(`${under}/recipients?limit=100`) : []
    rows.set(`${type}:${id}`, { ...(await read(under)), recipients })
  }
  return rows
}

/** Returns what differs between the rows that were read and the values that were written. */
export function differences(rows: Rows, written: readonly Written[], isEach: boolean): string[] {
  return written.flatMap(({ type, id, field, shown, sent }) => {
    const row = rows.get(`${type}:${id}`)
    if (row === undefined) return isEach ? [`${sent}: no ${type} ${id}`] : []
    const seen = valuesOf(row, new Set([field, snakeCase(field)]))
    // REST leaves out what is null, and some facts that only GraphQL has.
    if (seen.length === 0) return isEach ? [`${sent}: no ${field}`] : []
    // Some rows keep null for an empty text.
    return seen.includes(shown) || (shown === '' && seen.includes(null))
      ? []
      : [`${sent}: shown ${JSON.stringify(seen)}, not ${JSON.stringify(shown)}`]
  })
}

/** Every value under one of the names, at any depth. */
function valuesOf(json: unknown, names: ReadonlySet<string>): unknown[] {
  if (typeof json !== 'object' || json === null) return []
  if (Array.isArray(json)) return json.flatMap((each) => valuesOf(each, names))
  return Object.entries(json).flatMap(([name, value]: [string, unknown]) => [
    ...(names.has(name) ? (Array.isArray(value) ? value : [value]) : []),
    ...valuesOf(value, names),
  ])
}

/** Returns what the API shows of a value that it took, by the rules that the documents state. */
export function shownAs(field: string, value: unknown): string | number {
  // Minus zero is zero.
  if (typeof value !== 'string') return Number(value) + 0
  switch (field) {
    case 'customerPhone':
    case 'destinationPhone':
    case 'account':
      return parsePhone(value) ?? value
    case 'businessPhone':
      return parseContactPhone(value) ?? value
    case 'returnUrl':
    case 'cancelUrl':
      return new URL(value.trim()).href
    case 'url': {
      const url = new URL(value.trim())
      return Object.assign(url, { hash: '', hostname: url.hostname.replace(/\.$/, '') }).href
    }
    case 'email':
      return value.toLowerCase()
    case 'reference':
      return value.normalize('NFC')
    case 'description':
    case 'reason':
      return value.replaceAll(/\r\n?|[\v\u0085\u2028\u2029]/g, '\n')
    case 'ipWhitelist':
    case 'addresses':
      return networkEntry.parse(value)
    default:
      return value
  }
}
