import type { ServerResponse } from 'node:http'
import type { Context } from '../../context.ts'
import { asMerchant } from '../../database/merchant-pool.ts'
import { awaitEvent } from '../../events/await-event.ts'
import { isTransactionEvent } from '../../events/catalogue.ts'
import type { PayerPayment } from '../../resources/payment-links/find.ts'
import { paymentState } from '../../resources/transactions/check.ts'

/** How often a silent stream says that it lives, so that what lies in between keeps it. */
const pingMs = 12_000
/** After this time a browser connects again. */
const retryMs = 1_000

/** Choice: while a customer who read that it failed looks for a prompt that is slow. */
export const lateWatchMaxMs = 10 * 60_000

/** What a page says of an attempt while it waits to say something else. */
export type ShownState = 'pending' | 'failed'

/** What is waited for: `look` reads the payment again. */
interface Watch {
  payment: PayerPayment
  look: () => Promise<PayerPayment | null>
  shown: ShownState
}

/** How long the page of an attempt that ended unpaid goes on listening: none of it is left after a while. */
export function lateWatchMs({ settledAt, createdAt }: PayerPayment, now: Date): number {
  return (settledAt ?? createdAt).getTime() + lateWatchMaxMs - now.getTime()
}

/**
 * One event, `over`, as soon as an attempt to pay is no longer what its page says; then the stream ends. The
 * service's end cuts it without that, so that the browser comes back.
 * @param response its head is written; the promise ends with it
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

/** @returns false where the wait ended before there was anything else to say */
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
    // After the look at the log: what comes now, wakes.
    const now = await look()
    if (!now || paymentState[now.status] !== shown) return true
    const event = await asMerchant(merchantId, () =>
      awaitEvent(
        ctx.feed,
        merchantId,
        after,
        (each) => isTransactionEvent(each) && BigInt(each.data.transaction_id) === id,
        until,
      ),
    )
    if (event) after = event.position
  }
  return tooLate?.aborted === true
}
