import { html } from 'hono/html'
import { Hono } from 'hono'
import { type RefusalCode, refusals } from '../../shared/errors.ts'
import type { Config } from '../../config/config.ts'
import type { HttpBindings } from '../request.ts'
import { refusalsPath } from '../rest/envelope.ts'
import { page, readerOf } from './layout.ts'
import { frenchRefusals } from './refusal-words.ts'

const words = {
  fr: {
    title: 'Erreurs de l’API',
    lead: 'Chaque réponse d’erreur porte le code et l’adresse de son explication sur cette page, dans docs.',
    status: 'Statut REST',
  },
  en: {
    title: 'Errors of the API',
    lead: 'Each error answer has the code, and in docs the address of its explanation on this page.',
    status: 'REST status',
  },
} as const

/** Makes the page to which the `docs` of every refusal points: each code is an anchor. */
export function refusalsPage(mode: Config['mode']): Hono<HttpBindings> {
  const app = new Hono<HttpBindings>()
  app.get(refusalsPath, (c) => {
    const reader = readerOf(mode, c.req.url, c.req.header('accept-language'))
    const { language } = reader
    const say = words[language]
    const rows = Object.entries(refusals).map(
      ([code, { status, message }]) => html`<h2 id="${code}">${code}</h2>
<p>${say.status} ${status}. ${language === 'fr' ? frenchRefusals[code as RefusalCode] : message}</p>`,
    )
    return c.html(page(reader, say.title, html`<p>${say.lead}</p>${rows}`, { top: '../' }))
  })
  return app
}
