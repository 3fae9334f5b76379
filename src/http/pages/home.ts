import type { GraphQLSchema } from 'graphql'
import { Hono } from 'hono'
import { html } from 'hono/html'
import type { Services } from '../../context.ts'
import { printSdl } from '../../graphql/print.ts'
import { apiVersion } from '../../shared/version.ts'
import { type HttpBindings, requestIdOf } from '../request.ts'

/** The first page of the service, and its schema as text. */
export function pageRoutes(services: Services, schema: GraphQLSchema): Hono<HttpBindings> {
  const app = new Hono<HttpBindings>()
  app.use(async (c, next) => {
    await next()
    if (c.res.headers.has('X-Request-Id')) return
    c.header('X-Request-Id', requestIdOf(c.env.incoming))
    c.header('X-API-Version', apiVersion)
  })
  const sdl = printSdl(schema)
  app.get('/schema.graphql', (c) => c.text(sdl))
  app.get('/', (c) => c.html(home(services, c.req.query('lang') === 'en' ? 'en' : 'fr')))
  return app
}

const words = {
  fr: {
    title: 'Paiements marchands',
    lead: 'Encaissez par mobile money au Mali : une API GraphQL, et les mêmes opérations en REST.',
    graphql: 'Essayer GraphQL',
    schema: 'Lire le schéma',
    status: 'État du service',
    phones: 'Téléphones des clients (simulateur)',
    other: 'English',
    lang: 'en',
  },
  en: {
    title: 'Merchant payments',
    lead: 'Collect mobile money in Mali: a GraphQL API, and the same operations over REST.',
    graphql: 'Try GraphQL',
    schema: 'Read the schema',
    status: 'Service status',
    phones: "Customers' telephones (simulator)",
    other: 'Français',
    lang: 'fr',
  },
} as const

function home(services: Services, language: 'fr' | 'en') {
  const say = words[language]
  const sandbox = services.config.mode === 'sandbox'
  return html`<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${say.title}</title>
<style>
body{font:17px/1.5 system-ui,sans-serif;max-width:34rem;margin:0 auto;padding:1.5rem;
  color:#14213d;background:#fff}
h1{font-size:1.6rem;line-height:1.2}a{color:#0b57d0}ul{list-style:none;padding:0}
li a{display:block;padding:.8rem 1rem;margin:.5rem 0;border:1px solid #c5cbd8;
  border-radius:.6rem;text-decoration:none}
@media (prefers-color-scheme:dark){
  body{background:#10141c;color:#e8ecf4}a{color:#8ab4f8}li a{border-color:#3a4252}
}
</style>
</head>
<body>
<p><a href="?lang=${say.lang}" lang="${say.lang}">${say.other}</a></p>
<h1>${say.title}</h1>
<p>${say.lead}</p>
<ul>
${sandbox ? html`<li><a href="/graphql">${say.graphql}</a></li>` : ''}
<li><a href="/schema.graphql">${say.schema}</a></li>
<li><a href="/merchant/api/status">${say.status}</a></li>
${services.simulatorUrl ? html`<li><a href="${services.simulatorUrl}/phone">${say.phones}</a></li>` : ''}
</ul>
</body>
</html>`
}
