import { setTimeout as sleep } from 'node:timers/promises'
import type { Context } from '../../context.ts'
import { asMerchant } from '../../database/merchant-pool.ts'
import { awaitEvent } from '../../events/await-event.ts'
import { isTransactionEvent } from '../../events/catalogue.ts'
import { findLinkPayment, type LinkPayment } from '../../resources/payment-links/find.ts'
import { paymentState } from '../../resources/transactions/check.ts'

/** How often a silent stream says that it lives, so that what lies in between keeps it. */
const pingMs = 12_000
/** After this time a browser connects again. */
const retryMs = 1_000

/**
 * One event, `over`, as soon as an attempt to pay has ended; then the stream ends. The service's end cuts it
 * without that, so that the browser comes back.
 * @param leave called once, when the stream has ended
 */
export function paymentEvents(
  ctx: Context,
  slug: string,
  payment: LinkPayment,
  leave: () => void,
): ReadableStream<Uint8Array> {
  const gone = new AbortController()
  const until = AbortSignal.any([ctx.ending, gone.signal])
  return new ReadableStream({
    start(stream) {
      const write = (text: string) => stream.enqueue(Buffer.from(text))
      write(`retry: ${retryMs}\n\n`)
      void ping(write, until)
      awaitEnd(ctx, slug, payment, until)
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

/** @returns false where the wait ended before the attempt did */
async function awaitEnd(
  ctx: Context,
  slug: string,
  { id, merchantId, reference }: LinkPayment,
  until: AbortSignal,
): Promise<boolean> {
  let { after } = await asMerchant(merchantId, () => ctx.feed.start(merchantId, null))
  while (!until.aborted) {
    // After the look at the log: what comes now, wakes.
    const now = await findLinkPayment(ctx, slug, reference)
    if (!now || paymentState[now.status] !== 'pending') return true
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
  return false
}
