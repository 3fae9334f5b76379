import { html } from 'hono/html'
import type { HtmlEscapedString } from 'hono/utils/html'
import type { Config } from '../../config/config.ts'
import { type Language, preferredLanguage } from '../../shared/language.ts'
import { assets } from './assets.ts'

export type PageLanguage = Language

/** The choices of a visitor and of the service that change how each page is drawn. */
export interface PageReader {
  language: PageLanguage
  /** The query that names the language in addresses; empty where the browser decides. */
  query: string
  /** Every page of a sandbox says that its money is not real. */
  mode: Config['mode']
}

/**
 * Reads who visits a page. The language is the one that the visitor chose by the switch; else the supported
 * one that the browser prefers most; else French.
 * @param acceptLanguage the header `Accept-Language`
 */
export function readerOf(mode: Config['mode'], url: string, acceptLanguage = ''): PageReader {
  const chosen = new URLSearchParams(url.split('?', 2)[1]).get('lang')
  if (chosen === 'fr' || chosen === 'en') return { language: chosen, query: `?lang=${chosen}`, mode }
  return { language: preferredLanguage(acceptLanguage, 'fr'), query: '', mode }
}

const otherLanguage = { fr: 'English', en: 'Français' } as const

const sandboxWords = {
  fr: 'Bac à sable : l’argent n’est pas réel.',
  en: 'Sandbox: the money is not real.',
} as const

export type HtmlPart = HtmlEscapedString | Promise<HtmlEscapedString> | ''

/** The optional parts of a page, besides its title and its content. */
interface More {
  /** The relative path from the page to the top of the service: `../` for each folder. */
  top?: string
  /** The name of the page's owner, at its top. */
  from?: string
  /** A text before the title in the name of the window. */
  warning?: string
  /** A mark above the title. */
  mark?: HtmlPart
  /** The line below the title where a message shows the page's address, such as in WhatsApp. */
  preview?: string
  /** The foot of the page, below its card. */
  foot?: HtmlPart
  /** Further lines of the page's head. */
  head?: HtmlPart
}

/**
 * Draws a page of the service: small, made for telephones first, light or dark as the visitor's device is
 * set.
 */
export function page(
  { language, mode }: PageReader,
  title: string,
  content: HtmlPart,
  more: More = {},
): HtmlPart {
  const { top = '', from, warning = '', mark = '', preview, foot = '', head = '' } = more
  const other = language === 'fr' ? 'en' : 'fr'
  return html`<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="same-origin">
<title>${warning}${title}${from ? ` · ${from}` : ''}</title>
<link rel="icon" href="${top}${assets.icon.path}" type="image/svg+xml">
<link rel="stylesheet" href="${top}${assets.style.path}">
${preview === undefined ? '' : previewTags(title, preview, from)}
${head}
</head>
<body>
<header>${from ? html`<p>${from}</p>` : ''}${
    mode === 'sandbox' ? html`<span class="badge" title="${sandboxWords[language]}">TEST</span>` : ''
  }<a id="other" href="?lang=${other}" lang="${other}">${otherLanguage[language]}</a></header>
<main>
${mark}<h1>${title}</h1>
${content}
</main>
${foot}
</body>
</html>`
}

/** Tells a program that shows the page's address, such as WhatsApp, what to show with it. */
function previewTags(title: string, preview: string, from: string | undefined): HtmlPart {
  return html`<meta property="og:title" content="${title}">
<meta property="og:description" content="${preview}">
<meta property="og:type" content="website">
${from ? html`<meta property="og:site_name" content="${from}">` : ''}`
}
