import { html, raw } from 'hono/html'
import type { SimulatorCall, Reply } from '../http.ts'
import { header } from '../http.ts'
import { style } from './style.ts'
import type { PhoneLanguage } from './words.ts'
import { languages, words } from './words.ts'

/** A piece of a page; every value in its template is escaped. */
export type Markup = ReturnType<typeof html>

export interface SimulatorPage {
  readonly title: string
  readonly body: Markup
  readonly status?: number
  /** The seconds after which the browser loads the page again. */
  readonly refreshS?: number
  /** True if the page hides the links to the other pages, because a payer does not need them. */
  readonly alone?: boolean
}

const safety = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy':
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'same-origin',
  'x-robots-tag': 'noindex, nofollow',
  'cache-control': 'no-store',
} as const

/** Returns the language of a page: of its address, otherwise of the browser, otherwise French. */
export function languageOf(call: SimulatorCall): PhoneLanguage {
  const asked = languages.find((language) => language === call.query.get('lang'))
  if (asked) return asked
  return /^\s*en\b/i.test(header(call, 'accept-language')) ? 'en' : 'fr'
}

/** Returns the same path in a language. */
export function inLanguage(path: string, language: PhoneLanguage): string {
  return `${path}?lang=${language}`
}

/** Renders a whole page. It needs no script. */
export async function render(call: SimulatorCall, page: SimulatorPage): Promise<Reply> {
  const language = languageOf(call)
  const say = words[language]
  const other = language === 'fr' ? 'en' : 'fr'
  const refresh = page.refreshS ? html`<meta http-equiv="refresh" content="${page.refreshS}">` : ''
  const links = html`<a href="${inLanguage('/phone', language)}">${say.phone}</a>
    <a href="${inLanguage('/', language)}">${say.dashboard}</a>`
  const body = await html`<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
${refresh}
<title>${page.title} · ${say.simulator}</title>
<style>${raw(style)}</style>
</head>
<body class="${page.alone ? 'narrow' : ''}">
<header>
<strong>${say.simulator}</strong>
${page.alone ? '' : links}
<a href="${inLanguage(call.path, other)}" lang="${other}" hreflang="${other}">${say.other}</a>
</header>
<main>
<h1>${page.title}</h1>
${page.body}
</main>
<footer class="soft">${say.noRealMoney}</footer>
</body>
</html>`
  return { status: page.status ?? 200, headers: safety, body: String(body) }
}

/** Redirects the browser to a page with a GET. */
export function redirect(location: string): Reply {
  return { status: 303, headers: { location, 'cache-control': 'no-store' } }
}

/**
 * Whether a form was sent from one of our pages; a caller that is no browser sends no origin, and is allowed.
 */
export function isOwnForm(call: SimulatorCall): boolean {
  const site = header(call, 'sec-fetch-site')
  if (site !== '') return site === 'same-origin' || site === 'none'
  const origin = header(call, 'origin')
  return origin === '' || (URL.canParse(origin) && new URL(origin).host === header(call, 'host'))
}
