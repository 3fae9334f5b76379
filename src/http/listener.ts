import type { RequestListener } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import type { GraphQLSchema } from 'graphql'
import { Hono } from 'hono'
import type { Services } from '../context.ts'
import { busyRefusal } from '../database/busy.ts'
import { createOperations } from '../graphql/operation.ts'
import { callbackRoutes } from './callbacks.ts'
import { openExports } from './exports.ts'
import { createGraphqlHandler } from './graphql.ts'
import { openTemplates } from './import/templates.ts'
import { openHealth } from './health.ts'
import { openLinkCodes } from './link-codes.ts'
import { pageRoutes } from './pages/home.ts'
import { openPaymentLinks } from './pages/payment-link.ts'
import type { HttpBindings } from './request.ts'
import { notFound, openRest } from './rest/handler.ts'
import type { HttpServer } from './server.ts'
import { serveSubscriptions } from './subscriptions.ts'

/** The doors of the service. */
export interface Doors {
  listener: RequestListener
  /** Ends the live streams, with a cursor to go on from. */
  close(): Promise<void>
}

/** Puts every door on the one server: GraphQL, its sockets, REST, operators' callbacks, pages. */
export function createListener(services: Services, schema: GraphQLSchema, http: HttpServer): Doors {
  const operations = createOperations(schema)
  const graphql = createGraphqlHandler({ services, operations, isDraining: () => http.isDraining() })
  const sockets = serveSubscriptions({ services, operations, server: http.server })
  // First the files: `/bulk/batches/template.csv` is no id of a batch.
  const health = openHealth(services, http)
  const doors = [
    openExports(services, schema),
    openTemplates(services, schema),
    openLinkCodes(services, schema),
    openRest(services, schema),
    openPaymentLinks(services),
  ]
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
      else if (health(message, response)) return
      else if (!doors.some((door) => door(message, response))) void others(message, response)
    },
    close: () => sockets.close(),
  }
}
