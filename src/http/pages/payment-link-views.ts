import { html } from 'hono/html'
import type { FailureReason } from '../../operators/failure-reasons.ts'
import type { PayerPayment, PublicLink } from '../../resources/payment-links/find.ts'
import { paymentState } from '../../resources/transactions/check.ts'
import { formatXof } from '../../shared/money.ts'
import type { NumberRanges } from '../../config/number-ranges.ts'
import type { Provider } from '../../shared/providers.ts'
import { assets } from './assets.ts'
import { failureWords } from './failure-words.ts'
import { type PageLanguage, type HtmlPart, page, type PageReader } from './layout.ts'
import type { Problems, Typed } from './payment-link-form.ts'
import { words } from './payment-link-words.ts'
import { lateWatchMs } from './payment-stream.ts'

export interface FormView {
  link: PublicLink
  operators: readonly { provider: Provider; isDown: boolean }[]
  ranges: NumberRanges
  typed: Typed
  problems: Problems
}

/** Draws the form by which a payer pays a link. */
export function formPage(reader: PageReader, view: FormView): HtmlPart {
  const { language, query } = reader
  const { link, operators, ranges, typed, problems } = view
  const say = words[language]
  const isWrong = Object.keys(problems).length > 0
  const first = (['amount', 'phone', 'operator'] as const).find((name) => problems[name] !== undefined)
  const { amount } = link
  const known = ranges.filter(({ provider }) => operators.some((each) => each.provider === provider))
  const content = html`${link.description ? html`<p class="soft keep">${link.description}</p>` : ''}
${amount === null ? '' : html`<p class="sum">${formatXof(amount)}</p>`}
${problems.all === undefined ? '' : html`<p class="problem alert" role="alert">${problems.all}</p>`}
<form method="post" action="${link.slug}${query}" novalidate data-ranges="${known
    .map(({ prefix, provider }) => `${prefix}=${provider}`)
    .join()}">
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
<fieldset${problems.operator === undefined ? '' : html` aria-describedby="operator-problem"`}>
<legend>${say.operator}</legend>
${problemAt('operator', problems.operator)}
${choice(say.byNumber, '', typed.operator, html`<span id="suggested"></span>`, first === 'operator')}
${operators.map(({ provider, isDown }) =>
  choice(provider, provider, typed.operator, html`${isDown ? say.isDown : ''}`, false),
)}</fieldset>
<button data-busy="${say.busy}">${say.pay}${amount === null ? '' : html` ${formatXof(amount)}`}</button>
</form>
<p class="soft">${say.promise}</p>`
  return page(reader, link.title, content, {
    top: '../',
    from: link.merchantName,
    warning: isWrong ? say.warning : '',
    head: scripted('../'),
  })
}

function choice(name: string, value: string, chosen: string, subtext: HtmlPart, isFirst: boolean): HtmlPart {
  const isChosen = value === chosen
  return html`<label class="choice"><input type="radio" name="operator" value="${value}"${
    isChosen ? html` checked` : ''
  }${isFirst ? html` autofocus` : ''}>${name}<span class="soft">${subtext}</span></label>
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
  return page(reader, say.title, content, { top: '../', from: link.merchantName, mark: mark('bad') })
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
  return page(reader, say.title, content, { top: '../', from: link.merchantName, mark: waits })
}

/** Draws a page with a short message only. */
export function plainPage(
  reader: PageReader,
  what: 'missing' | 'many' | 'down' | 'large' | 'fault',
  top: string,
): HtmlPart {
  const { title, text } = words[reader.language][what]
  return page(reader, title, html`<p>${text}</p>`, { top, mark: mark('bad') })
}

/** The addresses around the page of a payment. */
interface PageLinks {
  /** The relative path to the top of the service. */
  top: string
  /** The last part of the page's own address. */
  self: string
  /** The address to try again; null where only the merchant can ask again. */
  again: string | null
}

/** Draws the page of an attempt to pay: the steps on the telephone, the receipt, or why it failed. */
export function paymentPage(
  reader: PageReader,
  links: PageLinks,
  payment: PayerPayment,
  now: Date,
): HtmlPart {
  const state = paymentState[payment.status]
  if (state === 'pending') return waitingPage(reader, links, payment)
  if (state === 'success') return receiptPage(reader, links, payment)
  if (payment.status === 'reversed') return reversedPage(reader, links, payment)
  return failedPage(reader, links, payment, lateWatchMs(payment, now) > 0)
}

function waitingPage(reader: PageReader, { top, self }: PageLinks, payment: PayerPayment): HtmlPart {
  const { language, query } = reader
  const { provider, phone, paymentUrl, title } = payment
  const { waiting: say } = words[language]
  const about = html`${title === null ? '' : html`<p class="soft">${title}</p>`}${sum(payment)}`
  const refresh = html`<p><a href="${self}${query}">${say.refresh}</a></p>`
  const content = paymentUrl
    ? html`${about}
<p>${say.hostedText(provider)}</p>
<a class="button" href="${paymentUrl}" rel="noreferrer">${say.go(provider)}</a>
${refresh}`
    : html`${about}
<ol><li>${say.asked(provider, masked(phone))}</li><li>${say.code}</li><li>${say.turns}</li></ol>
<h2>${say.nothing}</h2>
<p class="soft">${say.look(provider)}</p>
${refresh}`
  return page(reader, paymentUrl ? say.hosted(provider) : say.title, content, {
    top,
    from: payment.merchantName,
    mark: html`<span class="mark wait" data-live="${self}/live"></span>`,
    head: html`${scripted(top)}
<noscript><meta http-equiv="refresh" content="${refreshS}"></noscript>`,
  })
}

/**
 * The pause between two reloads of the page in a browser without JavaScript, in seconds. Choice: short enough
 * for a payer who waits, and long enough to read the page.
 */
const refreshS = 8

/** Draws the receipt. Where the payer paid less than was asked, the page says so instead of "complete". */
function receiptPage(reader: PageReader, { top }: PageLinks, payment: PayerPayment): HtmlPart {
  const { language } = reader
  const { done, partial } = words[language]
  const { amount, requested, merchantName: from } = payment
  const isPartial = amount < requested
  const content = html`${sum(payment)}
${isPartial ? html`<p>${partial.text(formatXof(requested - amount), from)}</p>` : ''}
${rows(language, payment)}
<button class="quiet" id="print" type="button" hidden>${done.print}</button>`
  return page(reader, isPartial ? partial.title : done.title, content, {
    top,
    from,
    mark: mark(isPartial ? 'bad' : 'good'),
    head: scripted(top),
  })
}

function reversedPage(reader: PageReader, { top }: PageLinks, payment: PayerPayment): HtmlPart {
  const { language } = reader
  const { reversed } = words[language]
  const content = html`${sum(payment)}<p>${reversed.text}</p>${rows(language, payment)}`
  return page(reader, reversed.title, content, { top, from: payment.merchantName })
}

/**
 * Draws the page of a failed attempt. A payment can still arrive late: for a while the page reports it to the
 * payer, before the payer pays again.
 */
function failedPage(
  reader: PageReader,
  { top, self, again }: PageLinks,
  payment: PayerPayment,
  isWatched: boolean,
): HtmlPart {
  const { language, query } = reader
  const { failed, waiting } = words[language]
  const { merchantName: from, title, amount } = payment
  const content = html`<p>${failureWords[reasonOf(payment)][language]}</p>
<p class="soft">${title === null ? '' : `${title} · `}${formatXof(amount)}</p>
${
  again === null
    ? html`<p>${failed.ask(from)}</p>`
    : html`<a class="button" href="${again}${query}">${failed.again}</a>`
}
<h2>${failed.debited}</h2>
<p class="soft">${failed.late}</p>
<p><a href="${self}${query}">${waiting.refresh}</a></p>`
  return page(reader, failed.title, content, {
    top,
    from,
    mark: isWatched
      ? html`<span class="mark bad" aria-hidden="true" data-live="${self}/live?shown=failed">!</span>`
      : mark('bad'),
    head: isWatched ? scripted(top) : '',
  })
}

function reasonOf({ status, failureReason }: PayerPayment): FailureReason {
  if (failureReason !== null && Object.hasOwn(failureWords, failureReason))
    return failureReason as FailureReason
  return status === 'expired' ? 'PAYER_TIMEOUT' : status === 'cancelled' ? 'CANCELLED' : 'UNSPECIFIED'
}

function rows(language: PageLanguage, payment: PayerPayment): HtmlPart {
  const { receipt: say } = words[language]
  const { merchantName, title, amount, requested, refunded, settledAt, createdAt, phone, provider } = payment
  const facts = [
    [say.merchant, merchantName],
    [say.about, title],
    [say.requested, amount === requested ? null : formatXof(requested)],
    [say.refunded, refunded === 0n ? null : formatXof(refunded)],
    [say.date, dateOf(settledAt ?? createdAt, language)],
    [say.phone, masked(phone)],
    [say.operator, provider],
    [say.operatorReference, payment.operatorReference, 'code'],
    [say.reference, payment.reference, 'code'],
  ] as const
  return html`<dl>${facts
    .filter(([, value]) => value !== null)
    .map(
      ([name, value, kind = 'name']) => html`<div><dt>${name}</dt><dd class="${kind}">${value}</dd></div>
`,
    )}</dl>`
}

function dateOf(at: Date, language: PageLanguage): string {
  const options = { dateStyle: 'long', timeStyle: 'short', timeZone: 'Africa/Bamako' } as const
  return new Intl.DateTimeFormat(language, options).format(at)
}

/** Masks a telephone number so that only its owner recognises it. */
function masked(phone: string): string {
  return phone.replace(/^\+223(\d\d)\d{4}(\d\d)$/, '+223\u{a0}$1\u{a0}••\u{a0}••\u{a0}$2')
}

function sum({ amount }: PayerPayment): HtmlPart {
  return html`<p class="sum">${formatXof(amount)}</p>`
}

function mark(kind: 'good' | 'bad'): HtmlPart {
  return kind === 'good'
    ? html`<span class="mark" aria-hidden="true">✓</span>`
    : html`<span class="mark bad" aria-hidden="true">!</span>`
}

function scripted(top: string): HtmlPart {
  return html`<script src="${top}${assets.paymentLink.path}" defer></script>`
}
