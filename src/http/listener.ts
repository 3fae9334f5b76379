import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import type { GraphQLSchema } from 'graphql'
import { Hono } from 'hono'
import type { Services } from '../context.ts'
import { createOperations } from '../graphql/operation.ts'
import { DomainError } from '../shared/errors.ts'
import { callbackRoutes } from './callbacks.ts'
import { exportRows } from './exports.ts'
import { createGraphqlHandler } from './graphql.ts'
import { templateRows } from './import/templates.ts'
import { openHealth } from './health.ts'
import { linkCodeRows } from './link-codes.ts'
import { pageRoutes } from './pages/home.ts'
import { paymentLinkRows } from './pages/payment-link.ts'
import { anonymousContext, type HttpBindings, pathOf, requestIdOf, type RouteRow } from './request.ts'
import { faultResponse } from './pages/fault.ts'
import { refusalResponse, restRows } from './rest/handler.ts'
import type { HttpServer } from './server.ts'
import { serveSubscriptions } from './subscriptions.ts'

/** The listener of the HTTP server, and the function that closes its WebSockets. */
export interface Listeners {
  listener: RequestListener
  /** Closes the WebSockets; server-sent events end by themselves when the server drains. */
  close(): Promise<void>
}

/**
 * Makes the handler of the HTTP server. It passes each request by its path: to GraphQL, to a row of the table
 * (REST, files and payment pages), or to the operators' callbacks and the other pages. It also serves the
 * WebSockets of GraphQL.
 */
export function createListener(services: Services, schema: GraphQLSchema, http: HttpServer): Listeners {
  const operations = createOperations(schema)
  const graphql = createGraphqlHandler({ services, operations, isDraining: () => http.isDraining() })
  const sockets = serveSubscriptions({ services, operations, server: http.server })
  const health = openHealth(services, http)
  const route = createRouter(services, [
    ...restRows(schema),
    ...exportRows(schema),
    ...templateRows(services, schema),
    ...linkCodeRows(schema),
    ...paymentLinkRows(),
  ])
  const app = new Hono<HttpBindings>()
  app.route('/', callbackRoutes(services))
  app.route('/', pageRoutes(services, schema))
  app.notFound((c) => refusalResponse(services, c.env.incoming, new DomainError('NOT_FOUND')))
  app.onError((error, c) => faultResponse(services, c.env.incoming, error))
  const others = getRequestListener(app.fetch, {
    overrideGlobalObjects: false,
    autoCleanupIncoming: false,
  })
  return {
    listener: (message, response) => {
      const path = message.url?.split('?', 1)[0]
      if (path === '/graphql') graphql(message, response)
      else if (path === '/livez' || path === '/readyz') health(message, response)
      else if (!route(message, response)) void others(message, response)
    },
    close: () => sockets.close(),
  }
}

/**
 * Makes the router for `rows`. A path without parts in braces is looked up directly; paths with such parts
 * are tried in the order of the rows.
 * @returns a function that serves a request and returns true; for a request that is not in `rows`, the
 * function does nothing and returns false
 */
export function createRouter(
  services: Services,
  rows: readonly RouteRow[],
): (message: IncomingMessage, response: ServerResponse) => boolean {
  const find = findRows(rows)
  return (message, response) => {
    const path = pathOf(message)
    const found = path === null ? null : find(path)
    const serve = found?.row.serve(message.method === 'HEAD' ? 'GET' : (message.method ?? ''))
    if (!found || !serve) return false
    const ctx = anonymousContext(services, message, requestIdOf(message), 'rest')
    void serve({ ctx, message, response, params: found.params })
    return true
  }
}

function findRows(rows: readonly RouteRow[]) {
  const isOpen = ({ path }: RouteRow) => path.includes('{')
  const known = new Map(rows.filter((row) => !isOpen(row)).map((row) => [row.path, { row, params: {} }]))
  const patterns = rows.filter(isOpen).map((row) => ({ row, pattern: patternOf(row) }))
  return (path: string): { row: RouteRow; params: Readonly<Record<string, string>> } | null => {
    const exact = known.get(path)
    if (exact) return exact
    for (const { row, pattern } of patterns) {
      const match = pattern.exec(path)
      if (!match) continue
      const params = Object.entries(match.groups ?? {}).map(([name, text]) => [name, decoded(text)])
      return { row, params: Object.fromEntries(params) as Record<string, string> }
    }
    return null
  }
}

function patternOf({ path, part = '[^/]+' }: RouteRow): RegExp {
  return new RegExp(`^${path.replaceAll('.', '\\.').replace(/\{(\w+)\}/g, `(?<$1>${part})`)}$`)
}

/** Decodes a part of a path; a part with an invalid encoding stays as it is. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
