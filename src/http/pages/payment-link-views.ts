import { html } from 'hono/html'
import type { NumberRanges } from '../../config/number-ranges.ts'
import type { OperatorFace, OperatorFaces } from '../../config/operator-faces.ts'
import type { PublicLink } from '../../resources/payment-links/find.ts'
import { formatXof } from '../../shared/money.ts'
import type { Provider } from '../../shared/providers.ts'
import { assets } from './assets.ts'
import { type PageLanguage, type HtmlPart, page, type PageReader } from './layout.ts'
import { ofMerchant } from './merchant-contact.ts'
import type { Problems, Typed } from './payment-link-form.ts'
import { words } from './payment-link-words.ts'

export interface FormView {
  link: PublicLink
  operators: readonly { provider: Provider; isDown: boolean }[]
  faces: OperatorFaces
  ranges: NumberRanges
  typed: Typed
  problems: Problems
}

/** Draws the form by which a payer pays a link. */
export function formPage(reader: PageReader, view: FormView): HtmlPart {
  const { language, query } = reader
  const { link, typed, problems } = view
  const say = words[language]
  const isWrong = Object.keys(problems).length > 0
  const first = (['amount', 'phone', 'operator'] as const).find((name) => problems[name] !== undefined)
  const { amount } = link
  const content = html`${link.description ? html`<p class="soft keep">${link.description}</p>` : ''}
${amount === null ? '' : html`<p class="sum">${formatXof(amount)}</p>`}
${problems.all === undefined ? '' : html`<p class="problem alert" role="alert">${problems.all}</p>`}
<form method="post" action="${link.slug}${query}" novalidate data-ranges="${suggestions(view)}">
<input type="hidden" name="token" value="${typed.token}" autocomplete="off">
${
  amount === null
    ? field({
        name: 'amount',
        label: say.amount,
        hint: say.amountHint,
        attributes: html`inputmode="numeric" autocomplete="off" maxlength="24"`,
        value: typed.amount,
        problem: problems.amount,
        isFirst: first === 'amount',
      })
    : html`<input type="hidden" name="amount" value="${amount}" autocomplete="off">`
}
${field({
  name: 'phone',
  label: say.phone,
  hint: say.phoneHint,
  attributes: html`type="tel" autocomplete="tel" maxlength="32"`,
  value: typed.phone,
  problem: problems.phone,
  isFirst: first === 'phone',
})}
${operatorChoice(language, view, first === 'operator')}
<button data-busy="${say.busy}">${say.pay}${amount === null ? '' : html` ${formatXof(amount)}`}</button>
</form>
<p class="soft">${say.promise}</p>`
  return page(reader, link.title, content, {
    top: '../',
    ...ofMerchant(language, link),
    warning: isWrong ? say.warning : '',
    preview: say.preview(link.merchantName, amount === null ? null : formatXof(amount)),
    head: scripted('../'),
  })
}

/** Writes which first digits suggest which operator: `76=OperatorA,70=OperatorB`. */
function suggestions({ operators, ranges }: FormView): string {
  const known = ranges.filter(({ provider }) => operators.some((each) => each.provider === provider))
  return known.map(({ prefix, provider }) => `${prefix}=${provider}`).join()
}

/**
 * Draws the choice of the operator as one line: most payers need not open it, and the button stays on the
 * first screen of a small telephone.
 */
function operatorChoice(
  language: PageLanguage,
  { operators, faces, typed, problems }: FormView,
  isFirst: boolean,
): HtmlPart {
  const say = words[language]
  const isOpen = problems.operator !== undefined || typed.operator !== ''
  return html`<details class="operators"${isOpen ? html` open` : ''}>
<summary><b>${say.operator}</b> <span id="suggested">${say.byNumber}</span> <u>${say.change}</u></summary>
<fieldset${problems.operator === undefined ? '' : html` aria-describedby="operator-problem"`}>
<legend class="unseen">${say.operator}</legend>
${problemAt('operator', problems.operator)}
${choice({ name: say.byNumber, value: '', chosen: typed.operator, isFirst })}
${operators.map(({ provider, isDown }) =>
  choice({
    name: faces[provider].label,
    value: provider,
    chosen: typed.operator,
    sign: signOf(faces[provider]),
    subtext: isDown ? say.isDown : '',
  }),
)}</fieldset>
</details>`
}

/** Draws the logo of an operator, else a dot of its colour. */
function signOf({ logo, colour }: OperatorFace): HtmlPart {
  if (logo) return html`<img src="../${logo.path}" alt="" height="28">`
  // The pages allow no style attributes.
  return colour === null
    ? ''
    : html`<svg viewBox="0 0 28 28" height="28" aria-hidden="true">
<circle cx="14" cy="14" r="9" fill="${colour}"/></svg>`
}

interface Choice {
  name: string
  value: string
  chosen: string
  sign?: HtmlPart
  subtext?: string
  isFirst?: boolean
}

function choice({ name, value, chosen, sign = '', subtext = '', isFirst = false }: Choice): HtmlPart {
  const marks = html`${value === chosen ? html` checked` : ''}${isFirst ? html` autofocus` : ''}`
  return html`<label class="choice"><input type="radio" name="operator" value="${value}"${marks}>
${sign}<span class="name">${name}</span><span class="soft">${subtext}</span></label>
`
}

interface Field {
  name: string
  label: string
  hint: string
  attributes: HtmlPart
  value: string
  problem: string | undefined
  /** True for the first field with a problem. */
  isFirst: boolean
}

function field({ name, label, hint, attributes, value, problem, isFirst }: Field): HtmlPart {
  const wrong = html` aria-invalid="true" aria-describedby="${name}-problem ${name}-hint"`
  return html`<label for="${name}">${label}</label>
<p class="soft hint" id="${name}-hint">${hint}</p>
<input id="${name}" name="${name}" ${attributes} value="${value}" required${
    problem === undefined ? html` aria-describedby="${name}-hint"` : wrong
  }${isFirst ? html` autofocus` : ''}>
${problemAt(name, problem)}`
}

function problemAt(name: string, problem: string | undefined): HtmlPart {
  return problem === undefined ? '' : html`<p class="problem" id="${name}-problem">${problem}</p>`
}

/** Draws the page that says why a link accepts no more payments. */
export function closedPage(reader: PageReader, link: PublicLink): HtmlPart {
  const say = words[reader.language].closed
  const content = html`<p>${link.title}</p>
<p>${say[link.availability]} ${say.ask(link.merchantName)}</p>`
  return page(reader, say.title, content, {
    top: '../',
    ...ofMerchant(reader.language, link),
    mark: mark('bad'),
  })
}

/**
 * Draws the page of a link whose slots are all taken by open attempts: it says in how many minutes, at most,
 * a slot becomes free.
 */
export function busyPage(reader: PageReader, link: PublicLink, minutes: number): HtmlPart {
  const { language, query } = reader
  const { inUse: say, failed } = words[language]
  const content = html`<p>${link.title}</p>
<p>${say.text(minutes)}</p>
<a class="button" href="${link.slug}${query}">${failed.again}</a>`
  const waits = html`<span class="mark wait"></span>`
  return page(reader, say.title, content, {
    top: '../',
    ...ofMerchant(language, link),
    mark: waits,
  })
}

/** Draws a page with a short message only. */
export function plainPage(
  reader: PageReader,
  what: 'missing' | 'many' | 'none' | 'down' | 'large' | 'fault',
  top: string,
): HtmlPart {
  const { title, text } = words[reader.language][what]
  return page(reader, title, html`<p>${text}</p>`, { top, mark: mark('bad') })
}

/** Draws the mark above a title: that all is well, or that something is wrong. */
export function mark(kind: 'good' | 'bad'): HtmlPart {
  return kind === 'good'
    ? html`<span class="mark" aria-hidden="true">✓</span>`
    : html`<span class="mark bad" aria-hidden="true">!</span>`
}

/** Loads the script of these pages. */
export function scripted(top: string): HtmlPart {
  return html`<script src="${top}${assets.paymentLink.path}" defer></script>`
}
