import type { IncomingMessage } from 'node:http'
import type { GraphQLSchema } from 'graphql'
import { Hono } from 'hono'
import { html } from 'hono/html'
import type { Services } from '../../context.ts'
import { printSdl } from '../../graphql/print.ts'
import { apiVersion } from '../../shared/version.ts'
import { type HttpBindings, requestIdOf } from '../request.ts'
import { refusalsPath } from '../rest/envelope.ts'
import { assetRoutes } from './assets.ts'
import { page, type PageReader, readerOf } from './layout.ts'
import { refusalsPage } from './refusals.ts'
import { mailPage, mayReadMail } from './mail.ts'
import { accountPages } from './account-pages.ts'
import { dashboardRoutes } from './dashboard.ts'

/**
 * The headers of every page that sets no others: the page may load only its style, search engines do not list
 * it, and no other page may frame it.
 */
const safety = {
  'Content-Security-Policy':
    "default-src 'none'; style-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'",
  'Referrer-Policy': 'same-origin',
  'X-Content-Type-Options': 'nosniff',
  'X-Robots-Tag': 'noindex, nofollow',
}

/**
 * Makes the routes of the first page, the schema as text, the dashboard, the pages to which e-mails link, and
 * a sandbox's e-mails.
 */
export function pageRoutes(services: Services, schema: GraphQLSchema): Hono<HttpBindings> {
  const app = new Hono<HttpBindings>()
  const { mode, faces } = services.config
  app.use(async (c, next) => {
    await next()
    for (const [name, value] of Object.entries(safety)) if (!c.res.headers.has(name)) c.header(name, value)
    if (c.res.headers.has('X-Request-Id')) return
    c.header('X-Request-Id', requestIdOf(c.env.incoming))
    c.header('X-API-Version', apiVersion)
  })
  const sdl = printSdl(schema)
  app.get('/schema.graphql', (c) => c.text(sdl))
  app.get('/', (c) =>
    c.html(home(services, readerOf(mode, c.req.url, c.req.header('accept-language')), c.env.incoming)),
  )
  app.route('/', assetRoutes(faces))
  app.route('/', accountPages(services))
  app.route('/', refusalsPage(mode))
  app.route('/', dashboardRoutes({ mode, faces, simulatorUrl: services.simulatorUrl }))
  const { folder } = services.config.mail
  if (folder !== null) app.route('/', mailPage(services, folder))
  return app
}

const words = {
  fr: {
    title: 'Paiements marchands',
    lead: 'Encaissez par mobile money au Mali : une API GraphQL, et REST pour les opérations courantes.',
    dashboard: 'Tableau de bord',
    graphql: 'Essayer GraphQL',
    schema: 'Lire le schéma',
    errors: 'Erreurs de l’API',
    status: 'État du service',
    phones: 'Téléphones des clients (simulateur)',
    mail: 'E-mails du bac à sable',
  },
  en: {
    title: 'Merchant payments',
    lead: 'Collect mobile money in Mali: a GraphQL API, and REST for the most usual operations.',
    dashboard: 'Dashboard',
    graphql: 'Try GraphQL',
    schema: 'Read the schema',
    errors: 'Errors of the API',
    status: 'Service status',
    phones: "Customers' telephones (simulator)",
    mail: 'E-mails of the sandbox',
  },
} as const

function home(services: Services, reader: PageReader, message: IncomingMessage) {
  const say = words[reader.language]
  const content = html`<p>${say.lead}</p>
<ul>
<li><a href="/app">${say.dashboard}</a></li>
${reader.mode === 'sandbox' ? html`<li><a href="/graphql">${say.graphql}</a></li>` : ''}
<li><a href="/schema.graphql">${say.schema}</a></li>
<li><a href="${refusalsPath}">${say.errors}</a></li>
<li><a href="/merchant/api/status">${say.status}</a></li>
${services.simulatorUrl ? html`<li><a href="${services.simulatorUrl}/phone">${say.phones}</a></li>` : ''}
${mayReadMail(services, message) ? html`<li><a href="/mail">${say.mail}</a></li>` : ''}
</ul>`
  return page(reader, say.title, content)
}
