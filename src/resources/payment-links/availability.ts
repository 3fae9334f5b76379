import { mine } from '../../identity/callers/actor.ts'
import { type Context, loader } from '../../context.ts'

/**
 * The availability of a link: `open` if a payer may begin to pay, else the reason (see
 * docs/design/rules.md#payment-links).
 */
export const availabilities = ['open', 'expired', 'exhausted', 'inactive'] as const
export type LinkAvailability = (typeof availabilities)[number]

/** The fields of a link that decide whether a payer may begin to pay. */
interface LinkUse {
  isActive: boolean
  expiresAt: Date | null
  usageLimit: number | null
  usageCount: number
  openCount: number
}

/**
 * Returns the availability of a link, by the same rules as the statement that begins a payment
 * (`link_availability`): an open attempt holds a slot for at most ten minutes.
 * @param freeInMs ms until a slot becomes free at the latest, where open attempts hold all slots; else null
 */
export function availabilityOf(link: LinkUse, freeInMs: number | null, now: Date): LinkAvailability {
  const { isActive, expiresAt, usageLimit, usageCount } = link
  if (!isActive) return 'inactive'
  if (expiresAt !== null && expiresAt <= now) return 'expired'
  return freeInMs !== null || (usageLimit !== null && usageCount >= usageLimit) ? 'exhausted' : 'open'
}

/** SQL for a link `l`: if open attempts hold all slots, ms until one is free at the latest; else null. */
export const freeInMsSql = `CASE WHEN l.usage_count + l.open_count >= l.usage_limit THEN
  ceil(extract(epoch FROM link_slots_free_at(l.id, l.usage_limit - l.usage_count, service_now())
    - service_now()) * 1000)::int END`

/**
 * Returns the availability of a link of the caller's merchant. It reads the open attempts only where they may
 * hold all slots.
 */
export async function readAvailability(
  ctx: Context,
  link: LinkUse & { id: number },
): Promise<LinkAvailability> {
  const { id, usageLimit, usageCount, openCount } = link
  const mayBeFull = usageLimit !== null && usageCount < usageLimit && usageCount + openCount >= usageLimit
  if (!mayBeFull) return availabilityOf(link, null, ctx.clock.now())
  const freeInMs = await loader<number, number | null>(ctx, 'freeInMs', (ids) => readFree(ctx, ids)).load(id)
  return availabilityOf(link, freeInMs, ctx.clock.now())
}

async function readFree(ctx: Context, ids: readonly number[]): Promise<(number | null)[]> {
  const { rows } = await ctx.database.merchantPool.query<{ id: number; freeInMs: number | null }>({
    name: 'link_slots_free',
    text: `SELECT l.id, ${freeInMsSql} AS "freeInMs" FROM payment_link l
      WHERE l.id = ANY ($1) AND l.merchant_id = $2`,
    values: [ids, mine(ctx).merchantId],
  })
  const found = new Map(rows.map(({ id, freeInMs }) => [id, freeInMs]))
  return ids.map((id) => found.get(id) ?? null)
}
