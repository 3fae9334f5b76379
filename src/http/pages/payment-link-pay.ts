import { randomBytes } from 'node:crypto'
import type { Context } from '../../context.ts'
import { findLinkPayment, findPublicLink, type PayerPayment } from '../../resources/payment-links/find.ts'
import { payByLink } from '../../resources/payment-links/pay.ts'
import { DomainError } from '../../shared/errors.ts'
import { type Drawn, drawForm } from './drawn-forms.ts'
import { checkForm, type Problems, type Typed, type PaymentInput } from './payment-link-form.ts'
import type { PageReader } from './layout.ts'
import { closedPage, type FormView, busyPage, plainPage } from './payment-link-views.ts'
import { words } from './payment-link-words.ts'

/** The answer of a page: the page itself, or the address of another one. */
export type PageAnswer =
  | ({ status: 200 | 403 | 404 | 409 | 410 | 413 | 422 | 429 | 500 | 503 } & Drawn)
  | { goTo: string }

/** The fields of an empty form. */
export const nothing: Typed = { amount: '', phone: '', operator: '', token: '' }

interface Shown {
  status: 200 | 403 | 409 | 422 | 429 | 503
  typed: Typed
  problems?: Problems
  draw?: (reader: PageReader, view: FormView) => Promise<Drawn>
}

/**
 * Shows the form of a link in its present state; 410 with the reason where the link accepts no more payments.
 */
export async function showLink(
  ctx: Context,
  reader: PageReader,
  slug: string,
  { status, typed, problems = {}, draw = drawForm }: Shown,
): Promise<PageAnswer> {
  const link = await findPublicLink(ctx, slug)
  if (!link) return missing(reader, '../')
  if (link.availability !== 'open' && link.freeInMs !== null) {
    const retryAfterS = Math.ceil(link.freeInMs / 1_000)
    ctx.responseHeaders.set('Retry-After', String(retryAfterS))
    return { status: 429, text: busyPage(reader, link, Math.ceil(retryAfterS / 60)) }
  }
  if (link.availability !== 'open') return { status: 410, text: closedPage(reader, link) }
  const operators = ctx.operators
    .list()
    .map(({ provider, collect }) => ({ provider, isDown: collect === 'down' }))
  if (operators.length === 0) return { status: 503, text: plainPage(reader, 'none', '../') }
  const { numberRanges: ranges, faces } = ctx.config
  // No payment was requested under the old token, or the payer is to start a new one.
  const token = newToken()
  const view = { link, operators, faces, ranges, typed: { ...typed, token }, problems }
  return { status, ...(await draw(reader, view)) }
}

/**
 * Requests the payment, and redirects to the page of the attempt. The same form sent again leads to the same
 * attempt; problems are shown in the form, with the payer's own input.
 */
export async function payByForm(
  ctx: Context,
  reader: PageReader,
  slug: string,
  typed: Typed,
): Promise<PageAnswer> {
  const link = await findPublicLink(ctx, slug)
  if (!link) return missing(reader, '../')
  const checked = checkForm(typed, link, ctx.config.numberRanges, reader.language)
  if ('problems' in checked)
    return showLink(ctx, reader, slug, { status: 422, typed, problems: checked.problems })
  const { payment } = checked
  const reference = `mp_${typed.token || newToken()}`
  const goTo = `${slug}/${reference}${reader.query}`
  try {
    await payByLink(ctx, link, payment, { reference, page: `${ctx.addresses.publicUrl}/l/${goTo}` })
    return { goTo }
  } catch (error) {
    if (!(error instanceof DomainError)) throw error
    if (error.code === 'PAYMENT_REFUSED') return { goTo }
    const before = await findLinkPayment(ctx, slug, reference)
    if (before && isSame(before, payment)) return { goTo }
    // The same form with another content (the payer went a page back) is an attempt of its own.
    if (error.code === 'DUPLICATE_REFERENCE' && typed.token !== '')
      return payByForm(ctx, reader, slug, { ...typed, token: '' })
    return showRefusal(ctx, reader, slug, { typed, payment, error })
  }
}

function isSame({ amount, phone, provider }: PayerPayment, payment: PaymentInput): boolean {
  return amount === payment.amount && phone === payment.customerPhone && provider === payment.paymentMethod
}

function showRefusal(
  ctx: Context,
  reader: PageReader,
  slug: string,
  { typed, payment, error }: { typed: Typed; payment: PaymentInput; error: DomainError },
): Promise<PageAnswer> {
  const say = words[reader.language].problems
  const again = (status: Shown['status'], problems: Problems = {}) =>
    showLink(ctx, reader, slug, { status, typed, problems })
  const { code, detail } = error
  // The page of the link says why, unless the link has opened again meanwhile.
  if (code === 'LINK_CLOSED' || code === 'NOT_FOUND') return again(409)
  if (code === 'AMOUNT_CHANGED') return again(409, { all: say.changed })
  // All other fields were checked before, so the refused field is the operator: the service does not use it.
  if (code === 'INVALID_INPUT') return again(422, { operator: say.operator })
  const { retryAfterS = 1, whose } = detail
  if (code !== 'OPERATOR_UNAVAILABLE' && code !== 'RATE_LIMITED') throw error
  // The page of the link says how long to wait, unless a slot has become free meanwhile.
  if (whose === 'link') return again(409)
  ctx.responseHeaders.set('Retry-After', String(retryAfterS))
  if (code === 'OPERATOR_UNAVAILABLE')
    return again(503, { operator: say.down(ctx.config.faces[payment.paymentMethod].label) })
  const minutes = Math.ceil(retryAfterS / 60)
  if (whose === 'telephone') return again(429, { phone: say.asked(minutes) })
  return again(429, { all: whose === 'address' ? say.nearby(minutes) : say.crowd })
}

export function missing(reader: PageReader, top: string): PageAnswer {
  return { status: 404, text: plainPage(reader, 'missing', top) }
}

let bits = Buffer.alloc(0)

/**
 * Makes a token of 128 random bits. The system is asked for the bits of many tokens at once, which takes a
 * tenth of the time.
 */
function newToken(): string {
  if (bits.length === 0) bits = randomBytes(4_096)
  const token = bits.toString('hex', 0, 16)
  bits = bits.subarray(16)
  return token
}
