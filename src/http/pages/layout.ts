import { html } from 'hono/html'
import type { HtmlEscapedString } from 'hono/utils/html'
import { type Language, preferredLanguage } from '../../shared/language.ts'
import { assets } from './assets.ts'

export type PageLanguage = Language

/**
 * Chooses the language of a page: the one in `asked`, which the visitor chose by the switch; else the
 * supported one that the browser prefers most; else French.
 * @param requested the header `Accept-Language`
 */
export function languageOf(asked: string | undefined, requested = ''): PageLanguage {
  if (asked === 'fr' || asked === 'en') return asked
  return preferredLanguage(requested, 'fr')
}

const otherLanguage = { fr: 'English', en: 'Français' } as const

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
  /** Further lines of the page's head. */
  head?: HtmlPart
}

/**
 * Draws a page of the service: small, made for telephones first, light or dark as the visitor's device is
 * set.
 */
export function page(language: PageLanguage, title: string, content: HtmlPart, more: More = {}): HtmlPart {
  const { top = '', from, warning = '', mark = '', head = '' } = more
  const other = language === 'fr' ? 'en' : 'fr'
  return html`<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="same-origin">
<title>${warning}${title}${from ? ` · ${from}` : ''}</title>
<link rel="stylesheet" href="${top}${assets.style.path}">
${head}
</head>
<body>
<header>${from ? html`<p>${from}</p>` : ''}<a id="other" href="?lang=${other}" lang="${other}">${
    otherLanguage[language]
  }</a></header>
<main>
${mark}<h1>${title}</h1>
${content}
</main>
</body>
</html>`
}
