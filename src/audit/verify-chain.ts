import type { KeyObject } from 'node:crypto'
import type { Pool } from 'pg'
import { transact } from '../database/transact.ts'
import { invalidInput } from '../shared/input.ts'
import {
  chain,
  chainStart,
  type ChainedEntry,
  type ChainFault,
  follow,
  type Head,
  isProven,
  isSame,
  checkEnd,
  type Link,
  proveHead,
  readHead,
  type LinkedEntry,
  writeHead,
} from './audit-chain.ts'
import { locks } from '../database/locks.ts'
import { sqlFunction } from '../database/sql-function.ts'

const chainEntries = sqlFunction('chain_audit_log', {
  takes: {
    merchants: 'int[]',
    ids: 'bigint[]',
    positions: 'bigint[]',
    hashes: 'bytea[]',
    headMerchants: 'int[]',
    headPositions: 'bigint[]',
    headHashes: 'bytea[]',
    proofs: 'bytea[]',
  },
  gives: 'void',
})

/** The most entries that one call adds to the chains. */
export const auditChainMax = 1_000

const entryColumns = `e.id, e.merchant_id AS "merchantId", e.actor, e.operation, e.target, e.address,
  e.request_id AS "requestId", e.channel, e.before::text AS before, e.after::text AS after,
  (extract(epoch FROM e.at) * 1000)::bigint AS "atMs"`

/**
 * Chains the entries that were committed since the last call, merchant by merchant. Every process may call
 * this function: an advisory lock lets one process at a time work. A killed process leaves nothing half done.
 * @param key `MasterSecret.auditKey`
 * @param most the number of entries, at most
 * @returns whether more entries may wait
 */
export async function chainAuditLog(pool: Pool, key: KeyObject, most = auditChainMax): Promise<boolean> {
  // Most calls find no entry and need no lock.
  const waiting = await pool.query({
    name: 'unchained_entries',
    text: 'SELECT FROM audit_unchained LIMIT 1',
  })
  if (waiting.rowCount === 0) return false
  return transact({ pool }, async (tx) => {
    const turn = await tx.query<{ free: boolean }>(
      `SELECT pg_try_advisory_xact_lock($1) AS free, set_config('enable_sort', 'off', true)`,
      [locks.auditChain],
    )
    if (!turn.rows[0]?.free) return false
    // This statement starts after the lock was taken, so it sees the links that others made before. Because
    // sorting is off, PostgreSQL finds each entry by the primary key, even if it takes the table for empty.
    const { rows } = await tx.query<ChainedEntry & { headPosition: bigint | null; headHash: Buffer | null }>({
      name: 'entries_to_chain',
      text: `SELECT ${entryColumns}, h.position AS "headPosition", h.hash AS "headHash"
        FROM (SELECT * FROM audit_unchained ORDER BY merchant_id, entry_id LIMIT $1) AS u
        JOIN LATERAL (
          SELECT * FROM audit_entry e
          WHERE (e.merchant_id, e.id) BETWEEN (u.merchant_id, u.entry_id) AND (u.merchant_id, u.entry_id)
          ORDER BY e.merchant_id, e.id LIMIT 1
        ) e ON true
        LEFT JOIN LATERAL (SELECT * FROM audit_head h WHERE h.merchant_id = u.merchant_id LIMIT 1) h ON true
        ORDER BY u.merchant_id, u.entry_id`,
      values: [most],
    })
    const heads = new Map<number, Link>()
    const links = rows.map((entry) => {
      const { headPosition: position, headHash: hash } = entry
      const kept = position !== null && hash !== null ? { position, hash } : chainStart
      const link = chain(heads.get(entry.merchantId) ?? kept, entry)
      heads.set(entry.merchantId, link)
      return link
    })
    const ends = [...heads]
    await chainEntries(tx, {
      merchants: rows.map(({ merchantId }) => merchantId),
      ids: rows.map(({ id }) => id),
      positions: links.map(({ position }) => position),
      hashes: links.map(({ hash }) => hash),
      headMerchants: ends.map(([merchantId]) => merchantId),
      headPositions: ends.map(([, { position }]) => position),
      headHashes: ends.map(([, { hash }]) => hash),
      proofs: ends.map(([merchantId, link]) => proveHead(key, merchantId, link)),
    })
    return rows.length === most
  })
}

/** The result of a check of a merchant's chain. */
export interface ChainVerdict {
  fault: ChainFault | null
  /** The position up to which the chain was followed. */
  upTo: bigint
  /** Whether the check is finished; if not, call again with `after` set to `upTo`. */
  isComplete: boolean
  /** The time at which the head was written; null if there is no head. */
  chainedAt: Date | null
  /** The head in one line, to be kept outside the database; null if there is no head. */
  head: string | null
}

/**
 * Follows a merchant's chain and compares its end with the head.
 * @param pool sees at least this merchant's rows
 * @param options.after the position of the last entry that was proven before, 0 for the whole chain
 * @param options.most entries that are read, at most
 * @param options.kept a head that was kept outside the database: the log must still contain it
 */
export async function verifyAuditLog(
  pool: Pool,
  key: KeyObject,
  merchantId: number,
  { after, most, kept = null }: { after: bigint; most: number; kept?: Head | null },
): Promise<ChainVerdict> {
  let head = await findHead(pool, merchantId)
  let link = await readLink(pool, merchantId, after)
  const verdict = (fault: ChainFault | null, isComplete: boolean): ChainVerdict => ({
    fault,
    upTo: link?.position ?? after,
    isComplete,
    chainedAt: head?.chainedAt ?? null,
    head: head && writeHead(merchantId, head),
  })
  const lost = kept && (await isLost(pool, merchantId, kept)) ? kept.position : null
  if (!link) return verdict({ position: after, entryId: null, problem: 'missing' }, true)
  for (let left = most; left > 0; ) {
    const entries = await readLinks(pool, merchantId, link.position, Math.min(left, pageMax))
    const followed = follow(link, entries)
    link = followed.link
    if (followed.fault) return verdict(followed.fault, true)
    if (lost !== null && entries.length === 0)
      return verdict({ position: lost, entryId: null, problem: 'head not contained' }, true)
    left -= entries.length
    if (entries.length > 0) continue
    if (link.position > (head?.position ?? 0n)) {
      // The chain may have grown after its head was read: read the head again.
      head = await findHead(pool, merchantId)
      left -= 1
      if (head && head.position > link.position) continue
    }
    const fault = checkEnd(key, merchantId, link, head)
    if (fault) return verdict(fault, true)
    const stray = await findStray(pool, merchantId)
    if (stray !== null) return verdict({ position: link.position, entryId: stray, problem: 'unsealed' }, true)
    const isGone = link.position === 0n && (await leftTraces(pool, merchantId))
    return verdict(isGone ? { position: 1n, entryId: null, problem: 'missing' } : null, true)
  }
  return verdict(null, false)
}

/**
 * Reads a head of an audit log that was kept outside the database: the head alone, or a line that has it.
 * @throws DomainError INVALID_INPUT if the text has no head, or if the head is of another merchant or of
 *   another installation
 */
export function readKeptHead(key: KeyObject, merchantId: number, text: string): Head {
  const wrong = (message: string) => invalidInput([{ field: 'head', message }])
  const read = text.length <= keptLengthMax ? readHead(text) : null
  if (!read) throw wrong('must hold a head of an audit log: merchant.position.hash.proof')
  if (read.merchantId !== merchantId) throw wrong(`is the head of merchant ${read.merchantId}`)
  if (!isProven(key, merchantId, read.head))
    throw wrong('was not written by this installation, or was changed')
  return read.head
}

/** The longest text, in characters, in which a head is searched: a log line has other fields too. */
const keptLengthMax = 2_000
const pageMax = 1_000

async function findHead(pool: Pool, merchantId: number): Promise<(Head & { chainedAt: Date }) | null> {
  const { rows } = await pool.query<Head & { chainedAt: Date }>(
    'SELECT position, hash, proof, chained_at AS "chainedAt" FROM audit_head WHERE merchant_id = $1',
    [merchantId],
  )
  return rows[0] ?? null
}

async function readLink(pool: Pool, merchantId: number, position: bigint): Promise<Link | null> {
  if (position === 0n) return chainStart
  const { rows } = await pool.query<Link>(
    'SELECT position, hash FROM audit_link WHERE merchant_id = $1 AND position = $2',
    [merchantId, position],
  )
  return rows[0] ?? null
}

async function readLinks(
  pool: Pool,
  merchantId: number,
  after: bigint,
  most: number,
): Promise<LinkedEntry[]> {
  const { rows } = await pool.query<LinkedEntry>(
    `SELECT ${entryColumns}, s.position, s.hash, s.entry_id AS "entryId"
     FROM audit_link s LEFT JOIN audit_entry e ON e.merchant_id = s.merchant_id AND e.id = s.entry_id
     WHERE s.merchant_id = $1 AND s.position > $2 ORDER BY s.position LIMIT $3`,
    [merchantId, after, most],
  )
  return rows
}

/** Whether the chain has another link, or none, at the position of a head that was kept outside. */
async function isLost(pool: Pool, merchantId: number, { position, hash }: Link): Promise<boolean> {
  const link = await readLink(pool, merchantId, position)
  return !link || !isSame(link.hash, hash)
}

/**
 * Whether the merchant has rows whose creation always writes an audit entry. If such rows exist, an empty
 * chain means that the log was removed. Returns false while entries still wait for their links.
 */
async function leftTraces(pool: Pool, merchantId: number): Promise<boolean> {
  const { rows } = await pool.query<{ found: boolean }>(
    `SELECT NOT EXISTS (SELECT FROM audit_unchained WHERE merchant_id = $1) AND (
      EXISTS (SELECT FROM api_key WHERE merchant_id = $1)
      OR EXISTS (SELECT FROM team_member WHERE merchant_id = $1)
      OR EXISTS (SELECT FROM transaction WHERE merchant_id = $1)
      OR EXISTS (SELECT FROM payout WHERE merchant_id = $1)) AS found`,
    [merchantId],
  )
  return rows[0]?.found === true
}

/**
 * Finds an entry that was inserted beside the chain: the number of entries must equal the number of links
 * and of entries that wait for their links.
 * @returns the id of an entry that has no link and does not wait for one; null if there is none
 */
async function findStray(pool: Pool, merchantId: number): Promise<bigint | null> {
  const { rows } = await pool.query<{ id: bigint }>(
    `SELECT e.id FROM audit_entry e
     WHERE e.merchant_id = $1
       AND (SELECT count(*) FROM audit_entry WHERE merchant_id = $1) <>
         (SELECT count(*) FROM audit_link WHERE merchant_id = $1) +
         (SELECT count(*) FROM audit_unchained WHERE merchant_id = $1)
       AND NOT EXISTS (SELECT FROM audit_unchained u WHERE u.merchant_id = $1 AND u.entry_id = e.id)
       AND NOT EXISTS (SELECT FROM audit_link s WHERE s.merchant_id = $1 AND s.entry_id = e.id)
     ORDER BY e.id LIMIT 1`,
    [merchantId],
  )
  return rows[0]?.id ?? null
}
