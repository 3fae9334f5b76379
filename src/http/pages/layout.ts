import { html } from 'hono/html'
import type { HtmlEscapedString } from 'hono/utils/html'

export type Language = 'fr' | 'en'

/** French unless English was asked for. */
export function languageOf(asked: string | undefined): Language {
  return asked === 'en' ? 'en' : 'fr'
}

const otherLanguage = { fr: 'English', en: 'Français' } as const

type Part = HtmlEscapedString | Promise<HtmlEscapedString>

/** A page of the service: small, for telephones first, light or dark as its reader has it. */
export function page(language: Language, title: string, content: Part): Part {
  const other = language === 'fr' ? 'en' : 'fr'
  return html`<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>${title}</title>
<style>
body{font:17px/1.5 system-ui,sans-serif;max-width:34rem;margin:0 auto;padding:1.5rem;
  color:#14213d;background:#fff;overflow-wrap:anywhere}
h1{font-size:1.6rem;line-height:1.2}a{color:#0b57d0}ul{list-style:none;padding:0}
li a{display:block;padding:.8rem 1rem;margin:.5rem 0;border:1px solid #c5cbd8;
  border-radius:.6rem;text-decoration:none}
label{display:block;margin:1rem 0 .3rem}.problem{margin:.3rem 0 1rem;color:#b3261e}
input,button{font:inherit;box-sizing:border-box;width:100%;padding:.7rem;
  border:1px solid #c5cbd8;border-radius:.6rem}
button{background:#0b57d0;color:#fff;border:0}pre{white-space:pre-wrap;font:inherit}
:focus-visible{outline:3px solid #0b57d0;outline-offset:2px}[aria-invalid=true]{border-color:#b3261e}
article{border-top:1px solid #c5cbd8;padding:1rem 0}
@media (prefers-color-scheme:dark){
  body{background:#10141c;color:#e8ecf4}a{color:#8ab4f8}li a,input{border-color:#3a4252}
  input{background:#10141c;color:#e8ecf4}.problem{color:#f2b8b5}:focus-visible{outline-color:#8ab4f8}
}
</style>
</head>
<body>
<p><a id="other" href="?lang=${other}" lang="${other}">${otherLanguage[language]}</a></p>
<h1>${title}</h1>
${content}
</body>
</html>`
}
