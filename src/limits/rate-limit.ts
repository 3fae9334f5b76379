import type pg from 'pg'
import { invariant } from '../shared/invariant.ts'
import { limits } from '../shared/limits.ts'

/** At most `max` hits in any stretch of `windowMs`. */
export interface RateLimitPolicy {
  max: number
  windowMs: number
}

/** What a hit met. */
export interface RateLimitState {
  allowed: boolean
  limit: number
  windowS: number
  /** Hits that are still free. */
  remaining: number
  /** Whole seconds until one more is free; of the general limits, until the window ends. */
  resetS: number
}

/**
 * Counts one hit under a name, unless the window is full: what is refused does not lengthen the wait.
 * Exact over all nodes: one statement on one row, by the database's clock.
 */
export async function takeHit(
  pool: pg.Pool | pg.PoolClient,
  name: string,
  policy: RateLimitPolicy,
): Promise<RateLimitState> {
  invariant(policy.max >= 1, 'a rate limit lets something through')
  const { rows } = await pool.query<{ allowed: boolean; taken: number; reset_ms: number }>({
    name: 'take-hit',
    text: takeHitSql,
    values: [name, policy.max, policy.windowMs],
  })
  const row = rows[0]
  invariant(row, 'an upsert returns its row')
  return {
    allowed: row.allowed,
    limit: policy.max,
    windowS: Math.ceil(policy.windowMs / 1_000),
    remaining: policy.max - row.taken,
    resetS: Math.max(1, Math.ceil(row.reset_ms / 1_000)),
  }
}

/**
 * Forgets the names without a hit in the longest window, 1,000 at a time.
 * @returns how many were forgotten; at most 100,000
 */
export async function sweepRateLimits(
  pool: pg.Pool,
  longestWindowMs: number = Math.max(limits.authWindowMs, limits.resetsWindowMs),
): Promise<number> {
  let forgotten = 0
  for (let round = 0; round < 100; round += 1) {
    const { rowCount } = await pool.query(sweepSql, [sweepBatch, longestWindowMs])
    forgotten += rowCount ?? 0
    if ((rowCount ?? 0) < sweepBatch) break
  }
  return forgotten
}

/**
 * The fields of draft-ietf-httpapi-ratelimit-headers, and `Retry-After` where the hit was refused.
 * They belong on every answer of a limited path.
 */
export function rateLimitHeaders(policyName: string, state: RateLimitState): Record<string, string> {
  return {
    'RateLimit-Policy': `"${policyName}";q=${state.limit};w=${state.windowS}`,
    RateLimit: `"${policyName}";r=${state.remaining};t=${state.resetS}`,
    ...(state.allowed ? {} : { 'Retry-After': String(state.resetS) }),
  }
}

/** Adds a limit to an answer's headers, beside those that are told already. */
export function tellRateLimit(headers: Map<string, string>, policyName: string, state: RateLimitState): void {
  for (const [name, value] of Object.entries(rateLimitHeaders(policyName, state))) {
    const told = name === 'Retry-After' ? undefined : headers.get(name)
    headers.set(name, told === undefined ? value : `${told}, ${value}`)
  }
}

/**
 * `hits` holds the hits of the window, oldest first. A refusal leaves them as they are and puts `infinity`
 * behind them: no moment, but a mark by which the statement tells its outcome. The next one drops it.
 */
const takeHitSql = `
  INSERT INTO rate_limit AS kept (name, hits)
  VALUES ($1, ARRAY[date_trunc('milliseconds', clock_timestamp())])
  ON CONFLICT (name) DO UPDATE SET hits = (
    SELECT array_append(
      array_agg(hit ORDER BY hit),
      CASE WHEN count(*) < $2::int THEN excluded.hits[1] ELSE 'infinity' END)
    FROM unnest(kept.hits) AS hit
    WHERE hit > excluded.hits[1] - make_interval(secs => $3::float8 / 1000) AND hit < 'infinity')
  RETURNING
    hits[cardinality(hits)] < 'infinity' AS allowed,
    (SELECT count(*)::int FROM unnest(hits) AS hit WHERE hit < 'infinity') AS taken,
    (extract(epoch FROM hits[1] - clock_timestamp()) * 1000 + $3::float8)::float8 AS reset_ms`

const sweepBatch = 1_000

/** Rows that a request holds at this moment are passed over. */
const sweepSql = `
  DELETE FROM rate_limit WHERE name IN (
    SELECT name FROM rate_limit
    WHERE NOT EXISTS (
      SELECT FROM unnest(hits) AS hit
      WHERE hit > clock_timestamp() - make_interval(secs => $2::float8 / 1000) AND hit < 'infinity')
    LIMIT $1
    FOR UPDATE SKIP LOCKED)`
