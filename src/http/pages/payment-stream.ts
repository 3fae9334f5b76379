import type { ServerResponse } from 'node:http'
import type { Context } from '../../context.ts'
import { asMerchant } from '../../database/merchant-pool.ts'
import { awaitEvent } from '../../events/await-event.ts'
import { changesOf } from '../../events/filter.ts'
import type { PayerPayment } from '../../resources/payment-links/find.ts'
import { paymentState } from '../../resources/transactions/check.ts'

/** The pause between two comments of a silent stream, so that proxies in between keep it open. */
const pingMs = 12_000
/** The time after which a browser connects again. */
const retryMs = 1_000

/**
 * The time for which the page of a failed attempt still listens. Choice: the customer may find a late prompt.
 */
export const lateWatchMaxMs = 10 * 60_000

/** The state of an attempt that a page shows while it waits for another one. */
export type ShownState = 'pending' | 'failed'

/** The payment that a page waits for; `look` reads the payment again. */
interface Watch {
  payment: PayerPayment
  look: () => Promise<PayerPayment | null>
  shown: ShownState
}

/**
 * Returns how long the page of an attempt that ended unpaid still listens; zero or less if it no longer does.
 */
export function lateWatchMs({ settledAt, createdAt }: PayerPayment, now: Date): number {
  return (settledAt ?? createdAt).getTime() + lateWatchMaxMs - now.getTime()
}

/**
 * Sends one event, `over`, as soon as the state of an attempt differs from the state that its page shows, or
 * a failed attempt is watched no longer; then the stream ends. When the service ends, it cuts the stream
 * without that event, so that the browser connects again.
 * @param response its head is written already; the function ends the response
 */
export async function sendPaymentEvents(ctx: Context, watch: Watch, response: ServerResponse): Promise<void> {
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  if (response.destroyed) gone.abort()
  response.write(`retry: ${retryMs}\n\n`)
  const heart = setInterval(() => response.write(':\n\n'), pingMs).unref()
  try {
    const isOver = await awaitChange(ctx, watch, AbortSignal.any([ctx.ending, gone.signal]))
    if (isOver) response.write('event: over\ndata:\n\n')
  } finally {
    clearInterval(heart)
    response.end()
  }
}

/** Waits until the page must be loaded again. @returns false where the client or the service ended first */
async function awaitChange(
  ctx: Context,
  { payment, look, shown }: Watch,
  ending: AbortSignal,
): Promise<boolean> {
  const { id, merchantId } = payment
  const watchMs = shown === 'failed' ? Math.max(0, lateWatchMs(payment, ctx.clock.now())) : null
  const tooLate = watchMs === null ? null : AbortSignal.timeout(watchMs)
  const until = tooLate ? AbortSignal.any([ending, tooLate]) : ending
  let { after } = await asMerchant(merchantId, () => ctx.feed.start(merchantId, null))
  while (!until.aborted) {
    // The position in the log was read before this look: any later event wakes the loop.
    const now = await look()
    if (!now || paymentState[now.status] !== shown) return true
    const event = await asMerchant(merchantId, () =>
      awaitEvent(ctx.feed, merchantId, after, changesOf('transaction', id), until),
    )
    if (event) after = event.position
  }
  return tooLate?.aborted === true
}
