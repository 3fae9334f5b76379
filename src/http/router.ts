import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Context, Services } from '../context.ts'
import { anonymousContext, passOver, pathOf, requestIdOf } from './request.ts'

/** A request at its row of the table; nobody has signed in yet. */
export interface Exchange {
  ctx: Context
  message: IncomingMessage
  response: ServerResponse
  /** What the parts of the path in braces stand for. */
  params: Readonly<Record<string, string>>
}

/** Answers a request, its failure included: it never rejects. */
export type Serve = (exchange: Exchange) => Promise<void>

/** A row of the table. */
export interface Row {
  /** A part in braces stands for anything. */
  path: string
  /** What the parts in braces look like, as a regular expression. */
  part?: string
  /** @returns null where the path is not there for this method */
  serve: (method: string) => Serve | null
}

/**
 * The one table of paths: most are found at once, those with parts in braces are tried in its order.
 * @returns whether the request is of the table; else nothing was done
 */
export function createRouter(
  services: Services,
  rows: readonly Row[],
): (message: IncomingMessage, response: ServerResponse) => boolean {
  const find = findRows(rows)
  return (message, response) => {
    const path = pathOf(message)
    const found = path === null ? null : find(path)
    const serve = found?.row.serve(message.method === 'HEAD' ? 'GET' : (message.method ?? ''))
    if (!found || !serve) return false
    const ctx = anonymousContext(services, message, requestIdOf(message), 'rest')
    void serve({ ctx, message, response, params: found.params }).finally(() => {
      if (!message.complete) passOver(message)
    })
    return true
  }
}

function findRows(rows: readonly Row[]) {
  const isOpen = ({ path }: Row) => path.includes('{')
  const known = new Map(rows.filter((row) => !isOpen(row)).map((row) => [row.path, { row, params: {} }]))
  const patterns = rows.filter(isOpen).map((row) => ({ row, pattern: patternOf(row) }))
  return (path: string): { row: Row; params: Readonly<Record<string, string>> } | null => {
    const place = known.get(path)
    if (place) return place
    for (const { row, pattern } of patterns) {
      const match = pattern.exec(path)
      if (!match) continue
      const params = Object.entries(match.groups ?? {}).map(([name, text]) => [name, decoded(text)])
      return { row, params: Object.fromEntries(params) as Record<string, string> }
    }
    return null
  }
}

function patternOf({ path, part = '[^/]+' }: Row): RegExp {
  return new RegExp(`^${path.replaceAll('.', '\\.').replace(/\{(\w+)\}/g, `(?<$1>${part})`)}$`)
}

/** What is no valid encoding stays as it is. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
