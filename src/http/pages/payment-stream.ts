import { setTimeout as sleep } from 'node:timers/promises'
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
 * @param leave called once, when the stream has ended
 */
export function paymentEvents(
  ctx: Context,
  { payment, look, shown }: Watch,
  leave: () => void,
): ReadableStream<Uint8Array> {
  const gone = new AbortController()
  const until = AbortSignal.any([ctx.ending, gone.signal])
  return new ReadableStream({
    start(stream) {
      const write = (text: string) => stream.enqueue(Buffer.from(text))
      write(`retry: ${retryMs}\n\n`)
      void ping(write, until)
      awaitChange(ctx, { payment, look, shown }, until)
        .then((isOver) => {
          if (gone.signal.aborted) return
          if (isOver) write('event: over\ndata:\n\n')
          stream.close()
        })
        .catch((error: unknown) => {
          ctx.log.error({ err: error }, 'the outcome of a payment was not awaited')
          if (!gone.signal.aborted) stream.close()
        })
        .finally(() => {
          gone.abort()
          leave()
        })
    },
    cancel: () => gone.abort(),
  })
}

async function ping(write: (text: string) => void, until: AbortSignal): Promise<void> {
  for (;;) {
    await sleep(pingMs, undefined, { signal: until, ref: false }).catch(() => {})
    if (until.aborted) return
    write(':\n\n')
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
