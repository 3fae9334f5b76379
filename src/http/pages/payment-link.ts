import { type Context as Call, Hono } from 'hono'
import type { Context, Services } from '../../context.ts'
import { addressBlock } from '../../access/ip-whitelist.ts'
import { takePlaces } from '../../access/places.ts'
import { findLinkPayment, findReceipt, type PayerPayment } from '../../resources/payment-links/find.ts'
import { checkPayment, paymentState } from '../../resources/transactions/check.ts'
import { DomainError } from '../../shared/errors.ts'
import { limits } from '../../shared/limits.ts'
import { apiVersion } from '../../shared/version.ts'
import { anonymousContext, type HttpBindings, readBody, requestIdOf } from '../request.ts'
import { languageOf } from './layout.ts'
import { readForm } from './payment-link-form.ts'
import { type Answer, missing, payByForm, showLink } from './payment-link-pay.ts'
import { paymentPage, plainPage, type Reader } from './payment-link-views.ts'
import { paymentEvents } from './payment-stream.ts'

type PageCall = Call<HttpBindings>

/**
 * The public pages of payment links: the form, and each attempt to pay by it. Nobody signs in: the slug is
 * the credential of a link, and the reference that of an attempt.
 */
export function paymentLinkPages(services: Services): Hono<HttpBindings> {
  const app = new Hono<HttpBindings>()
  app.get('/l/:slug', (c) =>
    answer(services, c, 'read', (ctx, reader) =>
      ctx.admission.run('read', () => showLink(ctx, reader, c.req.param('slug'))),
    ),
  )
  app.post('/l/:slug', (c) =>
    answer(services, c, 'write', async (ctx, reader) => {
      const body = await readBody(c.env.incoming, limits.linkFormMaxBytes)
      if (body === null) return { status: 413, text: plainPage(reader, 'large', '../') }
      const slug = c.req.param('slug')
      return ctx.admission.run('money', () =>
        isOwnForm(ctx, c)
          ? payByForm(ctx, reader, slug, readForm(body))
          : showLink(ctx, reader, slug, { status: 403, typed: readForm(body) }),
      )
    }),
  )
  app.get('/l/:slug/:reference', (c) =>
    answer(services, c, 'read', (ctx, reader) =>
      ctx.admission.run('status', async () => {
        const { slug, reference } = c.req.param()
        const payment = await findLinkPayment(ctx, slug, reference)
        if (!payment) return missing(reader, '../../')
        return showPayment(ctx, reader, { top: '../../', self: reference, again: `../${slug}` }, payment)
      }),
    ),
  )
  app.get('/r/:token', (c) =>
    answer(services, c, 'read', (ctx, reader) =>
      ctx.admission.run('status', async () => {
        const token = c.req.param('token')
        const payment = await findReceipt(ctx, token)
        if (!payment) return missing(reader, '../')
        const { slug, reference } = payment
        if (slug !== null) return { goTo: `../l/${slug}/${reference}${reader.query}` }
        return showPayment(ctx, reader, { top: '../', self: token, again: null }, payment)
      }),
    ),
  )
  app.get('/l/:slug/:reference/live', (c) => {
    const { slug, reference } = c.req.param()
    return sendLive(services, c, (ctx) => findLinkPayment(ctx, slug, reference))
  })
  app.get('/r/:token/live', (c) => sendLive(services, c, (ctx) => findReceipt(ctx, c.req.param('token'))))
  return app
}

function showPayment(
  ctx: Context,
  reader: Reader,
  place: Parameters<typeof paymentPage>[1],
  payment: PayerPayment,
): Answer {
  askInTheBackground(ctx, payment)
  return { status: 200, text: paymentPage(reader, place, payment, ctx.clock.now()) }
}

async function answer(
  services: Services,
  c: PageCall,
  kind: 'read' | 'write',
  work: (ctx: Context, reader: Reader) => Promise<Answer>,
): Promise<Response> {
  const ctx = contextOf(services, c)
  const reader = readerOf(c)
  const shown = await answerInTime(ctx, kind, `${c.req.method} ${c.req.routePath}`, reader, () =>
    work(ctx, reader),
  )
  for (const [name, value] of ctx.responseHeaders) c.header(name, value)
  for (const [name, value] of Object.entries(pageHeaders)) c.header(name, value)
  c.header('X-Request-Id', ctx.requestId)
  if ('goTo' in shown) return c.redirect(shown.goTo, 303)
  return c.html(shown.text, shown.status)
}

/** Who comes too often, or while too much is going on, is told so in words. */
async function answerInTime(
  ctx: Context,
  kind: 'read' | 'write',
  route: string,
  reader: Reader,
  work: () => Promise<Answer>,
): Promise<Answer> {
  try {
    ctx.admission.check(kind === 'write' ? 'money' : 'read')
    await ctx.requestLimits.takePage(ctx, kind === 'write' ? 'form' : 'view')
    return await work()
  } catch (error) {
    const status = error instanceof DomainError ? turnedAway[error.code] : undefined
    if (!(error instanceof DomainError) || status === undefined) throw error
    ctx.responseHeaders.set('Retry-After', String(error.detail.retryAfterS ?? 1))
    const top = route.includes(':reference') ? '../../' : '../'
    return { status, text: plainPage(reader, 'many', top) }
  }
}

const turnedAway: Partial<Record<string, 429 | 503>> = { RATE_LIMITED: 429, OVERLOADED: 503 }

const pageHeaders = {
  'X-API-Version': apiVersion,
  'Cache-Control': 'no-store',
  'Content-Security-Policy':
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; " +
    "frame-ancestors 'none'; base-uri 'none'",
  // Without a referrer a browser would not say either that the form is our own.
  'Referrer-Policy': 'same-origin',
  'X-Content-Type-Options': 'nosniff',
  'X-Robots-Tag': 'noindex, nofollow',
  Vary: 'Accept-Language',
}

function contextOf(services: Services, c: PageCall): Context {
  return anonymousContext(services, c.env.incoming, requestIdOf(c.env.incoming), 'rest')
}

function readerOf(c: PageCall): Reader {
  const asked = c.req.query('lang')
  const language = languageOf(asked, c.req.header('accept-language'))
  return { language, query: asked === language ? `?lang=${language}` : '' }
}

/**
 * Whether a form was sent by a page of ours: no other site makes somebody's browser ask a telephone for
 * money. Browsers say so in either header; old ones say nothing.
 */
function isOwnForm(ctx: Context, c: PageCall): boolean {
  const site = c.req.header('sec-fetch-site')
  if (site !== undefined) return site === 'same-origin' || site === 'none'
  const origin = c.req.header('origin')
  return origin === undefined || origin === new URL(ctx.addresses.publicUrl).origin
}

/**
 * Somebody waits, and the operator's report may be lost; nobody waits for its answer here. Not at once: a
 * payment may be asked about every three seconds only, and the report that comes then would have to wait.
 */
function askInTheBackground(ctx: Context, { status, reference, merchantId, createdAt }: PayerPayment): void {
  const isYoung = ctx.clock.now().getTime() - createdAt.getTime() < limits.firstCheckMs
  if (paymentState[status] !== 'pending' || isYoung) return
  checkPayment(ctx, reference, merchantId).catch((error: unknown) => {
    if (!(error instanceof DomainError)) ctx.log.error({ err: error, reference }, 'a payment was not checked')
  })
}

async function sendLive(
  services: Services,
  c: PageCall,
  find: (ctx: Context) => Promise<PayerPayment | null>,
): Promise<Response> {
  const ctx = contextOf(services, c)
  const payment = await find(ctx)
  if (!payment) return c.body(null, 404)
  const key = `payers:${addressBlock(ctx.clientAddress)}`
  const leave = takePlaces(ctx.streams, [{ key, max: limits.linkStreamsPerAddressMax, whose: 'address' }])
  if (typeof leave !== 'function') return c.body(null, 429, { 'Retry-After': '5' })
  const shown = c.req.query('shown') === 'failed' ? 'failed' : 'pending'
  return c.body(paymentEvents(ctx, { payment, look: () => find(ctx), shown }, leave), 200, {
    'Content-Type': 'text/event-stream; charset=utf-8',
    'Cache-Control': 'no-store',
    'X-Accel-Buffering': 'no',
  })
}
