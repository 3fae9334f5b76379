import type { RequestListener } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import type { GraphQLSchema } from 'graphql'
import { Hono } from 'hono'
import type { Services } from '../context.ts'
import { busyRefusal } from '../database/busy.ts'
import { createOperations } from '../graphql/operation.ts'
import { callbackRoutes } from './callbacks.ts'
import { exportRows } from './exports.ts'
import { createGraphqlHandler } from './graphql.ts'
import { templateRows } from './import/templates.ts'
import { openHealth } from './health.ts'
import { linkCodeRows } from './link-codes.ts'
import { pageRoutes } from './pages/home.ts'
import { paymentLinkRows } from './pages/payment-link.ts'
import type { HttpBindings } from './request.ts'
import { notFound, restRows } from './rest/handler.ts'
import { createRouter } from './router.ts'
import type { HttpServer } from './server.ts'
import { serveSubscriptions } from './subscriptions.ts'

/** The doors of the service. */
export interface Doors {
  listener: RequestListener
  /** Ends the live streams, with a cursor to go on from. */
  close(): Promise<void>
}

/**
 * Puts every door on the one server: GraphQL and its sockets; the table of REST, files and payment pages; and
 * for the rest operators' callbacks and pages.
 */
export function createListener(services: Services, schema: GraphQLSchema, http: HttpServer): Doors {
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
  app.notFound((c) => notFound(services, c.env.incoming))
  app.onError((error, c) => {
    const busy = busyRefusal(error)
    if (busy) {
      services.log.warn({ err: error }, 'the database had no time')
      return c.text(busy.message, 503, { 'Retry-After': String(busy.detail.retryAfterS ?? 1) })
    }
    services.log.error({ err: error }, 'a request failed')
    return c.text('Something went wrong on our side.', 500)
  })
  const others = getRequestListener(app.fetch, { overrideGlobalObjects: false })
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
