import { createHash, createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'

/** The fields of an audit entry that its link covers. */
export interface ChainedEntry {
  id: bigint
  merchantId: number
  actor: string
  operation: string
  target: string
  address: string | null
  requestId: string | null
  channel: string
  /** JSON, as PostgreSQL writes `jsonb`. */
  before: string | null
  after: string | null
  /** Milliseconds since 1970. */
  atMs: bigint
}

/** A position in the chain, and the hash over all entries up to it. */
export interface Link {
  position: bigint
  hash: Uint8Array
}

/** A link and its entry; every field of the entry is null if the entry is gone. */
export type LinkedEntry = Link & { entryId: bigint } & (ChainedEntry | { [Name in keyof ChainedEntry]: null })

/** The last link as it is stored, with the HMAC that proves that this installation wrote it. */
export interface Head extends Link {
  proof: Uint8Array
}

/** The position at which a chain is broken, and the kind of the fault. */
export interface ChainFault {
  position: bigint
  /** The entry that the fault is about; null if the fault names no entry. */
  entryId: bigint | null
  problem:
    | 'missing'
    | 'altered'
    | 'repeated'
    | 'truncated'
    | 'beyond the head'
    | 'head forged'
    | 'unsealed'
    | 'head not contained'
}

/** The link before the first entry. */
export const chainStart: Link = { position: 0n, hash: new Uint8Array(32) }

/**
 * Makes the link of an entry: SHA-256 over the hash of the link before, the entry, and its position. The
 * entry is hashed as a JSON list of texts, because two different entries never have the same list.
 */
export function chain(previous: Link, entry: ChainedEntry): Link {
  const position = previous.position + 1n
  const { id, merchantId, actor, operation, target, address, requestId, channel, before, after, atMs } = entry
  const parts = [
    merchantId,
    position,
    id,
    actor,
    operation,
    target,
    address,
    requestId,
    channel,
    before,
    after,
  ]
  const text = JSON.stringify(['audit:v1', ...parts, atMs].map((part) => part && String(part)))
  return { position, hash: createHash('sha256').update(previous.hash).update(text).digest() }
}

/** Makes the HMAC-SHA-256 of a head: a person with the database but without the key cannot make another. */
export function proveHead(key: KeyObject, merchantId: number, { position, hash }: Link): Buffer {
  return createHmac('sha256', key).update(`audit-head:v1:${merchantId}:${position}:`).update(hash).digest()
}

/** Writes a head as the text that is kept outside the database: `<merchant>.<position>.<hash>.<proof>`. */
export function writeHead(merchantId: number, { position, hash, proof }: Head): string {
  const word = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64url')
  return `${merchantId}.${position}.${word(hash)}.${word(proof)}`
}

/**
 * Reads a head that was kept outside the database. The text may be the log line or the e-mail with the head.
 * @returns null if the text has no head
 */
export function readHead(text: string): { merchantId: number; head: Head } | null {
  const found = /(?<![\w.-])(\d{1,10})\.(\d{1,18})\.([\w-]{43})\.([\w-]{43})(?![\w-])/.exec(text)
  if (!found) return null
  const [, merchantId = '', position = '', hash = '', proof = ''] = found
  const bytes = (word: string) => Buffer.from(word, 'base64url')
  return {
    merchantId: Number(merchantId),
    head: { position: BigInt(position), hash: bytes(hash), proof: bytes(proof) },
  }
}

/** Whether this installation wrote a head. */
export function isProven(key: KeyObject, merchantId: number, head: Head): boolean {
  return isSame(proveHead(key, merchantId, head), head.proof)
}

/**
 * Follows a chain and checks each link.
 * @param entries with their links, in order
 * @returns the last good link, and the first fault, if any
 */
export function follow(from: Link, entries: Iterable<LinkedEntry>): { link: Link; fault: ChainFault | null } {
  let link = from
  for (const entry of entries) {
    const { position, entryId } = entry
    const expected = link.position + 1n
    const fault = (problem: ChainFault['problem'], at: bigint, id: bigint | null) => ({
      link,
      fault: { position: at, entryId: id, problem },
    })
    if (position > expected) return fault('missing', expected, null)
    if (position < expected) return fault('repeated', position, entryId)
    if (entry.id === null) return fault('missing', position, entryId)
    const next = chain(link, entry)
    if (!isSame(next.hash, entry.hash)) return fault('altered', position, entryId)
    link = next
  }
  return { link, fault: null }
}

/** Compares the end of a chain with its head. @param head null if none is stored */
export function checkEnd(
  key: KeyObject,
  merchantId: number,
  end: Link,
  head: Head | null,
): ChainFault | null {
  const position = head?.position ?? 0n
  const fault = (problem: ChainFault['problem'], at: bigint): ChainFault => ({
    position: at,
    entryId: null,
    problem,
  })
  if (head && !isProven(key, merchantId, head)) return fault('head forged', position)
  if (end.position < position) return fault('truncated', end.position + 1n)
  if (end.position > position) return fault('beyond the head', position + 1n)
  return head && !isSame(head.hash, end.hash) ? fault('altered', position) : null
}

/** Whether two hashes are the same. */
export function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && timingSafeEqual(one, other)
}
