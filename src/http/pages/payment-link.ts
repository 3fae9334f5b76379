import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import type { Context } from '../../context.ts'
import { addressBlock } from '../../shared/ip-whitelist.ts'
import { takeSlots } from '../../limits/slot.ts'
import { findLinkPayment, findReceipt, type PayerPayment } from '../../resources/payment-links/find.ts'
import { claimBounds } from '../../requests/store.ts'
import { checkPayment, paymentState, withdrawPayment } from '../../resources/transactions/check.ts'
import { busyRefusal } from '../../database/busy.ts'
import { enter, hasRoom, skip, takesPage } from '../../enter.ts'
import { DomainError } from '../../shared/errors.ts'
import { limits } from '../../shared/limits.ts'
import { apiVersion } from '../../shared/version.ts'
import { readBody, type RouteRow, type Serve } from '../request.ts'
import { bytesOf, rememberForms } from './drawn-forms.ts'
import { type PageReader, readerOf } from './layout.ts'
import { readForm } from './payment-link-form.ts'
import { type PageAnswer, missing, nothing, payByForm, showLink } from './payment-link-pay.ts'
import { plainPage } from './payment-link-views.ts'
import { notCancelledPage, paymentPage } from './payment-page.ts'
import { sendPaymentEvents } from './payment-stream.ts'

/** The largest body of a link's form. */
const linkFormMaxBytes = 4 * 1_024

/** A request of a visitor for a page of a link. */
interface Visit {
  ctx: Context
  message: IncomingMessage
  reader: PageReader
  params: Readonly<Record<string, string>>
  /** The relative path to the top of the service. */
  top: '../' | '../../'
}

/** A function that sends a page or a stream. */
type Send = (visit: Visit, response: ServerResponse) => Promise<void>

/**
 * Makes the public pages of payment links: the form, the page of each attempt to pay by it, and the page of
 * each collection. A visitor does not sign in. A visitor with the slug may open the link; with the slug and
 * the reference, the attempt; with the receipt token, the page of the collection.
 */
export function paymentLinkRows(): RouteRow[] {
  const draw = rememberForms()
  const showForm = page('view', ({ ctx, reader, params: { slug = '' } }) =>
    ctx.admission.run('read', () => showLink(ctx, reader, slug, { status: 200, typed: nothing, draw })),
  )
  return [
    rowOf('/l/{slug}', { GET: showForm, POST: page('form', takeForm) }),
    rowOf('/l/{slug}/{reference}', { GET: page('view', showAttempt), POST: page('form', cancelAttempt) }),
    rowOf('/r/{token}', { GET: page('view', showReceipt) }),
    rowOf('/l/{slug}/{reference}/live', { GET: sendLive }),
    rowOf('/r/{token}/live', { GET: sendLive }),
  ]
}

/** A function that makes the answer of a page; the request counts as a view or as a form. */
type Page = (visit: Visit) => Promise<PageAnswer>

function page(kind: 'view' | 'form', answer: Page): Send {
  return async (visit, response) => sendPage(visit, await answerInTime(visit, kind, answer), response)
}

/** Makes the row of a path. A request with another method gets the answer of an unknown path. */
function rowOf(path: string, methods: Readonly<Record<string, Send>>): RouteRow {
  return {
    path,
    serve: (method) => {
      const send = methods[method]
      return send ? serving(send) : null
    },
  }
}

function serving(send: Send): Serve {
  return async ({ ctx, message, response, params }) => {
    const top = params['reference'] === undefined ? '../' : '../../'
    try {
      const reader = readerOf(ctx.config.mode, message.url ?? '', message.headers['accept-language'])
      await send({ ctx, message, reader, params, top }, response)
    } catch (error) {
      ctx.log.error({ err: error }, 'a page could not be sent')
      if (response.headersSent) response.destroy()
      else
        response
          .writeHead(500, { ...safety, 'Content-Type': 'text/plain' })
          .end('Something went wrong on our side.')
    }
  }
}

async function takeForm(visit: Visit): Promise<PageAnswer> {
  const { ctx, message, reader, params } = visit
  const body = await readBody(message, linkFormMaxBytes)
  if (body === null) return { status: 413, text: plainPage(reader, 'large', visit.top) }
  const typed = readForm(body)
  const { slug = '' } = params
  return ctx.admission.run('money', () =>
    isOwnForm(visit)
      ? payByForm(ctx, reader, slug, typed)
      : showLink(ctx, reader, slug, { status: 403, typed }),
  )
}

function showAttempt(visit: Visit): Promise<PageAnswer> {
  const { ctx, params } = visit
  const { slug = '', reference = '' } = params
  return ctx.admission.run('status', async () => {
    const payment = await findPayment(visit)
    return showPayment(visit, { self: reference, again: `../${slug}` }, payment)
  })
}

function showReceipt(visit: Visit): Promise<PageAnswer> {
  const { ctx, reader, params } = visit
  return ctx.admission.run('status', async () => {
    const payment = await findPayment(visit)
    if (payment?.slug != null) return { goTo: `../l/${payment.slug}/${payment.reference}${reader.query}` }
    return showPayment(visit, { self: params['token'] ?? '', again: null }, payment)
  })
}

function findPayment({ ctx, params: { token, slug = '', reference = '' } }: Visit) {
  return token === undefined ? findLinkPayment(ctx, slug, reference) : findReceipt(ctx, token)
}

function showPayment(
  { ctx, reader, top }: Visit,
  links: { self: string; again: string | null },
  payment: PayerPayment | null,
): PageAnswer {
  if (!payment) return missing(reader, top)
  askInTheBackground(ctx, payment)
  const shown = { ...payment, face: ctx.config.faces[payment.provider] }
  const capabilities = ctx.operators.find(payment.provider)?.capabilities
  return {
    status: 200,
    text: paymentPage(reader, { ...links, top }, shown, { now: ctx.clock.now(), capabilities }),
  }
}

/**
 * Withdraws the payment of an attempt, for a payer who typed a wrong number. If it ended unpaid, the payer
 * starts again at the form of the link. If it was paid, its page says so. Else the payer learns that the
 * prompt can still be answered.
 */
async function cancelAttempt(visit: Visit): Promise<PageAnswer> {
  const { ctx, reader, params } = visit
  const { slug = '', reference = '' } = params
  const payment = await ctx.admission.run('status', () => findPayment(visit))
  if (!payment) return missing(reader, visit.top)
  const self = { goTo: `${reference}${reader.query}` }
  const form = { goTo: `../${slug}${reader.query}` }
  if (!isOwnForm(visit)) return self
  // The second press of a double press finds the payment withdrawn.
  if (paymentState[payment.status] !== 'pending') return payment.failureReason === 'CANCELLED' ? form : self
  // A withdrawal waits for the operator, and must not take the slots that are for payments alone.
  const withdraw = () => ctx.admission.run('status', () => withdrawPayment(ctx, payment.id))
  const status =
    (await withdraw()) ??
    (await setTimeout(claimBounds.operatorQueryIntervalMs).then(withdraw)) ??
    (await ctx.admission.run('status', () => findPayment(visit)))?.status ??
    'pending'
  const state = paymentState[status]
  if (state === 'success') return self
  if (state === 'failed') return form
  return { status: 409, text: notCancelledPage(reader, { self: reference, again: `../${slug}` }, payment) }
}

async function sendPage({ ctx, message }: Visit, shown: PageAnswer, response: ServerResponse): Promise<void> {
  const headers = [...fixedHeaders, 'X-Request-Id', ctx.requestId]
  for (const [name, value] of ctx.responseHeaders) headers.push(name, value)
  if ('goTo' in shown) {
    headers.push('Location', shown.goTo, 'Content-Length', '0')
    response.writeHead(303, headers).end()
    return
  }
  const bytes = 'bytes' in shown ? shown.bytes : bytesOf(String(await shown.text))
  headers.push('Content-Type', 'text/html; charset=utf-8', 'Content-Length', String(bytes.length))
  response.writeHead(shown.status, headers).end(message.method === 'HEAD' ? undefined : bytes, 'latin1')
}

const addressIsCredential = skip('the slug, the reference or the token in the address is the credential')

/**
 * Runs a page's work. A visitor who comes too often, or while the service is busy, gets a page that says so,
 * and so does a visitor whose page fails: a payment may be under way, and the same form pays once.
 */
async function answerInTime(visit: Visit, kind: 'view' | 'form', answer: Page): Promise<PageAnswer> {
  const { ctx, reader, top } = visit
  try {
    await enter(ctx, {
      room: hasRoom(kind === 'form' ? 'money' : 'read'),
      caller: addressIsCredential,
      right: addressIsCredential,
      turn: takesPage(kind),
    })
    return await answer(visit)
  } catch (error) {
    const busy = busyRefusal(error)
    if (busy) ctx.log.warn({ err: error }, 'the database did not answer in time')
    const refusal = busy ?? error
    const shown = refusal instanceof DomainError ? refusalPages[refusal.code] : undefined
    if (!(refusal instanceof DomainError) || !shown) {
      ctx.log.error({ err: error }, 'a page could not be shown')
      return { status: 500, text: plainPage(reader, 'fault', top) }
    }
    ctx.responseHeaders.set('Retry-After', String(refusal.detail.retryAfterS ?? 1))
    return { status: shown.status, text: plainPage(reader, shown.what, top) }
  }
}

const refusalPages: Partial<Record<string, { status: 429 | 503; what: 'many' | 'down' }>> = {
  RATE_LIMITED: { status: 429, what: 'many' },
  OVERLOADED: { status: 503, what: 'many' },
  SERVICE_DOWN: { status: 503, what: 'down' },
}

const safety = {
  'X-API-Version': apiVersion,
  'Cache-Control': 'no-store',
  'Content-Security-Policy':
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; " +
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
  // Without a referrer a browser would not say that a form comes from the service's own page.
  'Referrer-Policy': 'same-origin',
  'X-Content-Type-Options': 'nosniff',
  'X-Robots-Tag': 'noindex, nofollow',
}
/** The names and values of the headers, alternating. */
const fixedHeaders = [...Object.entries(safety).flat(), 'Vary', 'Accept-Language']

/**
 * Whether a page of this service sent a form: no other site may make a visitor's browser request a payment
 * from a telephone. Browsers say so in one of two headers; old ones send neither.
 */
function isOwnForm({ ctx, message: { headers } }: Visit): boolean {
  const site = headers['sec-fetch-site']
  if (site !== undefined) return site === 'same-origin' || site === 'none'
  return headers.origin === undefined || headers.origin === new URL(ctx.addresses.publicUrl).origin
}

/**
 * Asks the operator about a payment in the background, because the payer waits and the operator's callback
 * may be lost. The page does not wait for the result. The service does not ask about a young payment: it may
 * ask only every three seconds, and a callback that comes in between would have to wait.
 */
function askInTheBackground(ctx: Context, { status, reference, merchantId, createdAt }: PayerPayment): void {
  const isYoung = ctx.clock.now().getTime() - createdAt.getTime() < limits.firstCheckMs
  if (paymentState[status] !== 'pending' || isYoung) return
  checkPayment(ctx, reference, merchantId).catch((error: unknown) => {
    if (!(error instanceof DomainError))
      ctx.log.error({ err: error, reference }, 'the state of a payment could not be checked')
  })
}

async function sendLive(visit: Visit, response: ServerResponse): Promise<void> {
  const { ctx, message } = visit
  const look = () => findPayment(visit)
  const payment = await look()
  if (!payment) return void response.writeHead(404, safety).end()
  const key = `payers:${addressBlock(ctx.clientAddress)}`
  const leave = takeSlots(ctx.streams, [{ key, max: limits.linkStreamsPerAddressMax, whose: 'address' }])
  if (typeof leave !== 'function')
    return void response.writeHead(429, { ...safety, 'Retry-After': '5' }).end()
  try {
    response.writeHead(200, { ...safety, ...eventHeaders })
    const shown = /[?&]shown=failed(?:&|$)/.test(message.url ?? '') ? 'failed' : 'pending'
    if (message.method === 'HEAD') response.end()
    else await sendPaymentEvents(ctx, { payment, look, shown }, response)
  } finally {
    leave()
  }
}

const eventHeaders = { 'Content-Type': 'text/event-stream; charset=utf-8', 'X-Accel-Buffering': 'no' }
