import { randomBytes, randomUUID } from 'node:crypto'
import type pg from 'pg'
import { collectByLink } from '../../src/resources/payment-links/pay.ts'

/** The terms of a link: by default 5,000 francs, any number of times. */
export interface LinkTerms {
  amount?: number | null
  limit?: number | null
  expiresAt?: Date | null
}

let made = 0

/** Makes a link of a merchant. @returns its id */
export async function openLink(owner: pg.Pool, merchantId: number, terms: LinkTerms = {}): Promise<number> {
  const { amount = 5_000, limit = null, expiresAt = null } = terms
  const { rows } = await owner.query<{ id: number }>(
    `INSERT INTO payment_link (merchant_id, title, amount, url_slug, usage_limit, expires_at, created_at,
       updated_at) VALUES ($1, 'Café', $2, $3, $4, $5, now(), now()) RETURNING id`,
    [merchantId, amount, `link-${(made += 1)}`, limit, expiresAt],
  )
  return rows[0]?.id ?? 0
}

export interface AttemptInput {
  outcome: 'made' | 'closed' | 'changed' | 'differs' | 'held' | 'crowded' | 'asked' | 'nobody'
  availability: string
  /** 0: no transaction was made. */
  id: bigint
}

/**
 * Runs `collect_by_link` itself.
 * @param shown the amount that the payer saw
 * @param asked how often a telephone may be asked in an hour
 */
export async function payBy(
  pool: pg.Pool,
  link: number,
  shown = 5_000,
  { phone = '+22370000001', asked = 1_000_000, identity = '' } = {},
): Promise<AttemptInput> {
  const [row] = await collectByLink(pool, {
    link,
    operator: 'OperatorA',
    phone,
    shown,
    reference: `by-link-${(made += 1)}`,
    request: {},
    lifetimeMs: 86_400_000,
    fenceMs: 30_000,
    firstCheckMs: 12_000,
    askedMax: [asked],
    askedMs: [3_600_000],
    identity: identity || randomUUID(),
    // Each visitor is another, so that none holds more slots than one address may.
    visitor: randomBytes(32),
  })
  if (!row) return { outcome: 'nobody', availability: '', id: 0n }
  return { outcome: row.outcome, availability: row.availability, id: row.transactionId ?? 0n }
}

/** Reads the counts of a link, and its answer to the next payer. */
export async function countsOf(owner: pg.Pool, link: number): Promise<[number, number, string]> {
  const { rows } = await owner.query<{ used: number; open: number; can: string }>(
    `SELECT usage_count AS used, open_count AS open, link_availability(l) AS can
     FROM payment_link l WHERE id = $1`,
    [link],
  )
  const [row] = rows
  if (!row) throw new Error(`no link ${link}`)
  return [row.used, row.open, row.can]
}
