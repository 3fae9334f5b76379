import { html } from 'hono/html'
import type { OperatorFace } from '../../config/operator-faces.ts'
import type { FailureReason } from '../../operators/failure-reasons.ts'
import type { DriverCapabilities } from '../../operators/operator.ts'
import type { PayerPayment } from '../../resources/payment-links/find.ts'
import { paymentState } from '../../resources/transactions/check.ts'
import { formatXof } from '../../shared/money.ts'
import { failureWords } from './failure-words.ts'
import { type PageLanguage, type HtmlPart, page, type PageReader } from './layout.ts'
import { ofMerchant } from './merchant-contact.ts'
import { mark, scripted } from './payment-link-views.ts'
import { words } from './payment-link-words.ts'
import { lateWatchMs } from './payment-stream.ts'

/** A payment with its operator as payers know it. */
export type ShownPayment = PayerPayment & { face: OperatorFace }

/** The addresses around the page of a payment. */
interface PageLinks {
  /** The relative path to the top of the service. */
  top: string
  /** The last part of the page's own address. */
  self: string
  /** The address to try again; null where only the merchant can ask again. */
  again: string | null
}

/** The circumstances under which the page of a payment is drawn. */
interface Moment {
  now: Date
  /** The abilities of the payment's operator; absent where the service no longer uses the operator. */
  capabilities: Pick<DriverCapabilities, 'cancel' | 'promptTtlSeconds'> | undefined
}

/** Draws the page of an attempt to pay: the steps on the telephone, the receipt, or why it failed. */
export function paymentPage(
  reader: PageReader,
  links: PageLinks,
  payment: ShownPayment,
  { now, capabilities }: Moment,
): HtmlPart {
  const state = paymentState[payment.status]
  if (state === 'pending') return waitingPage(reader, links, payment, { now, capabilities })
  if (state === 'success') return receiptPage(reader, links, payment)
  if (payment.status === 'reversed') return reversedPage(reader, links, payment)
  return failedPage(reader, links, payment, lateWatchMs(payment, now) > 0)
}

function waitingPage(
  reader: PageReader,
  { top, self, again }: PageLinks,
  payment: ShownPayment,
  moment: Moment,
): HtmlPart {
  const { language, query } = reader
  const { face, phone, paymentUrl, title } = payment
  const { label, ussd } = face
  const { waiting: say } = words[language]
  const about = html`${title === null ? '' : html`<p class="soft">${title}</p>`}${sum(payment)}`
  const steps = paymentUrl
    ? html`<p>${say.hostedText(label)}</p>
${timeLeft(language, payment, moment)}
<a class="button" href="${paymentUrl}" rel="noreferrer">${say.go(label)}</a>`
    : html`<ol><li>${say.asked(label, masked(phone))}</li><li>${say.code}</li><li>${say.turns}</li></ol>
${timeLeft(language, payment, moment)}
<h2>${say.nothing}</h2>
<p class="soft">${say.look(label)}${ussd === null ? '' : ` ${say.ussd(ussd)}`}</p>`
  const back =
    again === null
      ? ''
      : html`<h2>${paymentUrl ? say.otherWay : say.wrongNumber}</h2>
${
  moment.capabilities?.cancel
    ? html`<form method="post" action="${self}${query}"><button class="quiet">${say.cancel}</button></form>`
    : html`<p><a href="${again}${query}">${say.restart}</a> <span class="soft">${say.onlyOne}</span></p>`
}`
  const content = html`${about}
${steps}
${back}
<p><a href="${self}${query}">${say.refresh}</a></p>`
  return page(reader, paymentUrl ? say.hosted(label) : say.title, content, {
    top,
    ...ofMerchant(language, payment),
    mark: html`<span class="mark wait" data-live="${self}/live"></span>`,
    head: html`${scripted(top)}
<noscript><meta http-equiv="refresh" content="${refreshS}"></noscript>`,
  })
}

/** Says how long the payer can still answer. The operator decides it; the service knows its usual time. */
function timeLeft(
  language: PageLanguage,
  { createdAt }: PayerPayment,
  { now, capabilities }: Moment,
): HtmlPart {
  if (!capabilities) return ''
  const { waiting: say } = words[language]
  const leftS = capabilities.promptTtlSeconds - Math.floor((now.getTime() - createdAt.getTime()) / 1_000)
  if (leftS <= 0) return html`<p class="soft">${say.over}</p>`
  const minutes = say.minutes(Math.ceil(leftS / 60))
  return html`<p class="soft" id="left" data-seconds="${leftS}" data-over="${say.over}">${say.left}
<b>${minutes}</b></p>`
}

/** Draws the page that says that a payment could not be withdrawn: its payer can still confirm it. */
export function notCancelledPage(
  reader: PageReader,
  { self, again }: Omit<PageLinks, 'top'>,
  payment: PayerPayment,
): HtmlPart {
  const { language, query } = reader
  const { notCancelled: say } = words[language]
  const content = html`<p>${say.text}</p>
<a class="button" href="${self}${query}">${say.back}</a>
<a class="button quiet" href="${again}${query}">${say.restart}</a>`
  return page(reader, say.title, content, {
    top: '../../',
    ...ofMerchant(language, payment),
    mark: mark('bad'),
  })
}

/**
 * The pause between two reloads of the page in a browser without JavaScript, in seconds. Choice: short enough
 * for a payer who waits, and long enough to read the page.
 */
const refreshS = 8

/** Draws the receipt. Where the payer paid less than was asked, the page says so instead of "complete". */
function receiptPage(reader: PageReader, { top }: PageLinks, payment: ShownPayment): HtmlPart {
  const { language } = reader
  const { done, partial } = words[language]
  const { amount, requested, merchantName: from } = payment
  const isPartial = amount < requested
  const content = html`${sum(payment)}
${isPartial ? html`<p>${partial.text(formatXof(requested - amount), from)}</p>` : ''}
${rows(language, payment)}
<a class="button quiet" id="share" hidden>${done.share}</a>
<button class="quiet" id="print" type="button" hidden>${done.print}</button>`
  return page(reader, isPartial ? partial.title : done.title, content, {
    top,
    ...ofMerchant(language, payment),
    preview: `${formatXof(amount)} · ${from}`,
    mark: mark(isPartial ? 'bad' : 'good'),
    head: scripted(top),
  })
}

function reversedPage(reader: PageReader, { top }: PageLinks, payment: ShownPayment): HtmlPart {
  const { language } = reader
  const { reversed } = words[language]
  const content = html`${sum(payment)}<p>${reversed.text}</p>${rows(language, payment)}`
  return page(reader, reversed.title, content, {
    top,
    ...ofMerchant(language, payment),
  })
}

/**
 * Draws the page of a failed attempt. A payment can still arrive late: for a while the page reports it to the
 * payer, before the payer pays again.
 */
function failedPage(
  reader: PageReader,
  { top, self, again }: PageLinks,
  payment: ShownPayment,
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
    ...ofMerchant(language, payment),
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

function rows(language: PageLanguage, payment: ShownPayment): HtmlPart {
  const { receipt: say } = words[language]
  const { merchantName, title, amount, requested, refunded, settledAt, createdAt, phone, face } = payment
  const facts = [
    [say.merchant, merchantName],
    [say.about, title],
    [say.requested, amount === requested ? null : formatXof(requested)],
    [say.refunded, refunded === 0n ? null : formatXof(refunded)],
    [say.date, dateOf(settledAt ?? createdAt, language)],
    [say.phone, masked(phone)],
    [say.operator, face.label],
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
