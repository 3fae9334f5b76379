import type pg from 'pg'
import { transact } from '../../src/database/transact.ts'
import { asMerchant } from '../../src/database/merchant-pool.ts'
import type { Feed } from '../../src/events/feed.ts'
import { patienceMs } from './eventually.ts'

/** Writes events as the service's functions do, in one transaction that stays open for a while. */
export async function writeEvents(owner: pg.Pool, merchantIds: readonly number[], holdMs = 0): Promise<void> {
  await transact({ pool: owner }, async (tx) => {
    await tx.query(
      `SELECT append_events(array_agg((m, 'payment_pending', '{}'::jsonb)::new_event), now())
       FROM unnest($1::int[]) AS m`,
      [merchantIds],
    )
    if (holdMs > 0) await tx.query('SELECT pg_sleep($1)', [holdMs / 1_000])
  })
}

/** `count` events of a merchant, announced. */
export async function fillLog(owner: pg.Pool, merchantId: number, count: number): Promise<void> {
  await owner.query(
    `SELECT append_events(array_agg(
       ($1, 'payment_pending', jsonb_build_object('n', n, 'reference', n::text))::new_event ORDER BY n
     ), now())
     FROM generate_series(1, $2) AS n`,
    [merchantId, count],
  )
  await owner.query('SELECT announce_events($1, 1000)', [[merchantId]])
}

/** Wraps a feed so that each merchant reads with its own rights, as operations do. */
export function onOwnBehalf(feed: Feed): Feed {
  return {
    ...feed,
    start: (merchantId, cursor) => asMerchant(merchantId, () => feed.start(merchantId, cursor)),
    subscribe: (subscription) => asMerchant(subscription.merchantId, () => feed.subscribe(subscription)),
  }
}

/** Reads positions until `count` came, or until nothing came for as long as a test waits. */
export async function readPositions(
  feed: Feed,
  merchantId: number,
  after: bigint,
  count: number,
): Promise<bigint[]> {
  const stop = new AbortController()
  const positions: bigint[] = []
  let timer = setTimeout(() => stop.abort(), patienceMs)
  for await (const event of feed.subscribe({ merchantId, after, signal: stop.signal })) {
    positions.push(event.position)
    if (positions.length >= count) break
    clearTimeout(timer)
    timer = setTimeout(() => stop.abort(), patienceMs)
  }
  clearTimeout(timer)
  return positions
}

export function upTo(count: number, from = 1): bigint[] {
  return Array.from({ length: count - from + 1 }, (_, n) => BigInt(from + n))
}
