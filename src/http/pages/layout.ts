import { html } from 'hono/html'
import type { HtmlEscapedString } from 'hono/utils/html'
import { assets } from './assets.ts'

export type PageLanguage = 'fr' | 'en'

/**
 * What was asked for by the switch, else the first of ours that the browser wishes, else French.
 * @param wished an `Accept-PageLanguage`
 */
export function languageOf(asked: string | undefined, requested = ''): PageLanguage {
  if (asked === 'fr' || asked === 'en') return asked
  const options = requested.split(',').map((wish) => {
    const [range = '', weight = '1'] = wish.split(/;\s*q=/)
    return { language: range.trim().slice(0, 2).toLowerCase(), weight: Number(weight) }
  })
  const ours = options.filter(({ language, weight }) => ['fr', 'en'].includes(language) && weight > 0)
  return ours.toSorted((a, b) => b.weight - a.weight)[0]?.language === 'en' ? 'en' : 'fr'
}

const otherLanguage = { fr: 'English', en: 'Français' } as const

export type HtmlPart = HtmlEscapedString | Promise<HtmlEscapedString> | ''

/** What a page may have beside its title and its content. */
interface More {
  /** The way from the page up to the top of the service: `../` for each folder. */
  top?: string
  /** Whose page it is, above all. */
  from?: string
  /** Before the title within the window's name. */
  warning?: string
  /** Above the title. */
  mark?: HtmlPart
  /** Further lines of the head. */
  head?: HtmlPart
}

/** A page of the service: small, for telephones first, light or dark as its reader has it. */
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
