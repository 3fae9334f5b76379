import type { Pool } from 'pg'
import type { Log } from '../telemetry/log.ts'
import { type Head, writeHead } from './audit-chain.ts'

/** Writes the heads of audit logs to the service's log: an owner of the database cannot change them there. */
export interface HeadLog {
  /**
   * Writes one line, `audit log head`, for each merchant with a log that has grown since the last call (or up
   * to 30 seconds before it); the first call takes the logs that have grown in the last 25 hours. Each call
   * first checks that each audit log still contains the last head that this process wrote for it, and raises
   * an alarm if not.
   */
  write(): Promise<void>
}

export function openHeadLog(pool: Pool, log: Log): HeadLog {
  const written = new Map<number, Head>()
  let since: Date | null = null
  return {
    async write() {
      // Check before reading new heads: a log that was cut and grew again would otherwise look unchanged.
      const lost = await findLost(pool, [...written])
      for (const [merchantId, head] of lost)
        log.error(
          { merchantId, head: writeHead(merchantId, head) },
          'alarm: the audit log no longer contains its head',
        )
      const kept = new Set(lost.map(([merchantId]) => merchantId))
      const { rows } = await pool.query<{ now: Date }>('SELECT now() AS now')
      for (let after = 0; ; ) {
        const heads = await readHeads(pool, since, after)
        for (const { merchantId, ...head } of heads) {
          after = merchantId
          if (!kept.has(merchantId)) written.set(merchantId, head)
          log.info({ merchantId, head: writeHead(merchantId, head) }, 'audit log head')
        }
        if (heads.length < pageMax) break
      }
      // A head with an earlier time may be committed after this read: the next call reads an overlap.
      since = rows[0] ? new Date(rows[0].now.getTime() - overlapMs) : since
    },
  }
}

const pageMax = 1_000
const overlapMs = 30_000

function readHeads(pool: Pool, since: Date | null, after: number) {
  return pool
    .query<Head & { merchantId: number }>(
      `SELECT merchant_id AS "merchantId", position, hash, proof FROM audit_head
       WHERE merchant_id > $2 AND chained_at > coalesce($1::timestamptz, now() - interval '25 hours')
       ORDER BY merchant_id LIMIT ${pageMax}`,
      [since, after],
    )
    .then(({ rows }) => rows)
}

/** Finds the heads that the logs no longer contain: their links are gone or have another hash. */
async function findLost(pool: Pool, heads: readonly (readonly [number, Head])[]) {
  const lost: (readonly [number, Head])[] = []
  for (let begin = 0; begin < heads.length; begin += pageMax) {
    const page = heads.slice(begin, begin + pageMax)
    const { rows } = await pool.query<{ index: number }>(
      `SELECT (k.ordinal - 1)::int AS index
       FROM unnest($1::int[], $2::bigint[], $3::bytea[])
         WITH ORDINALITY AS k (merchant_id, position, hash, ordinal)
       LEFT JOIN audit_link s ON s.merchant_id = k.merchant_id AND s.position = k.position
       WHERE s.hash IS DISTINCT FROM k.hash ORDER BY k.ordinal`,
      [page.map(([id]) => id), page.map(([, { position }]) => position), page.map(([, { hash }]) => hash)],
    )
    lost.push(...rows.map(({ index }) => page[index]).filter((each) => each !== undefined))
  }
  return lost
}
