import { createHash, randomBytes } from 'node:crypto'
import type pg from 'pg'
import { invariant } from '../shared/invariant.ts'
import type { MasterSecret } from '../identity/secrets/secrets.ts'
import { encrypt, decrypt } from '../identity/secrets/encrypt.ts'
import { sqlFunction, sqlType } from '../database/sql-function.ts'

const beginClaim = sqlFunction('claim_idempotency_key', {
  takes: {
    merchant: 'int',
    namedOperation: 'text',
    givenKey: 'text',
    givenDigest: 'bytea',
    newOperationId: 'bytea',
    leaseMs: 'int',
    lifetimeMs: 'bigint',
  },
  gives: {
    outcome: sqlType<'begun' | 'resumed' | 'answered' | 'running' | 'reused'>('text'),
    operationId: 'bytea?',
    claim: 'int?',
    since: 'timestamptz?',
    answer: 'bytea?',
  },
})

const endClaim = sqlFunction('end_idempotency_claim', {
  takes: {
    merchant: 'int',
    namedOperation: 'text',
    givenKey: 'text',
    claimed: 'int',
    givenAnswer: 'bytea?',
    giveBack: 'boolean',
  },
  gives: 'void',
})

const sweepKeys = sqlFunction('sweep_idempotency_keys', {
  takes: { lifetimeMs: 'bigint', most: 'int' },
  gives: 'bigint',
})

/**
 * The lease of a claim. Choice: longer than a deposit waits for its operator. If a request runs longer, a
 * second caller can begin it too; its effects still happen once.
 */
export const idempotencyBounds = { leaseMs: 25_000 }

/** The lifetime of an idempotency key and its answer (see docs/design/rules.md#idempotency). */
const idempotencyKeptMs = 30 * 24 * 3_600_000

/**
 * A request with an `Idempotency-Key`. The key belongs to one merchant and one operation, which has one name
 * in all APIs. The same operation by another API has another form of `input`, and so it is another request.
 */
export interface KeyedRequest {
  merchantId: number
  operation: string
  key: string
  /** Everything that the operation depends on, as JSON: another input under the same key is refused. */
  input: unknown
}

/** The operation of one request. It takes effect once, however often it is begun. */
export interface IdempotentOperation {
  /** 32 hexadecimal digits, from which the rows that the request creates derive their identity. */
  readonly id: string
  /**
   * 64 hexadecimal digits that name the request: a hash of operation and key. If a restore loses the claim, a
   * request with the same key has the same name again, by every API, but a new random `id`.
   */
  readonly name: string
  /** True if an earlier run never reported its outcome: the rows of the operation may exist already. */
  readonly isResumed: boolean
  /** The service time at which the operation first began. */
  readonly since: Date
  /** `nothing`: nothing was written so far. `unknown`: the operation may have been done or not. */
  outcome: 'nothing' | 'done' | 'unknown'
}

export type Claim =
  | {
      kind: 'claimed'
      idempotentOperation: IdempotentOperation
      /** Keeps the answer for repetitions of the request. */
      keep(answer: string): Promise<void>
      /** Gives the key back, as if it had never been used. */
      giveBack(): Promise<void>
      /** Ends the claim without an answer: the next request with the key resumes the same operation. */
      leaveOpen(): Promise<void>
    }
  | { kind: 'answered'; answer: string }
  | { kind: 'running' }
  | { kind: 'reused' }

/**
 * Takes the right to run a request that came with an `Idempotency-Key`. One of the concurrent callers, over
 * all nodes, gets the claim and must end it. A claim expires after `idempotencyBounds.leaseMs`, because its
 * holder may have died. The next caller then resumes the same operation. If both holders run, the operation
 * still takes effect once. The answer is stored encrypted, because it may hold a secret that is shown once.
 */
export async function claimKey(pool: pg.Pool, master: MasterSecret, request: KeyedRequest): Promise<Claim> {
  const { merchantId, operation, key } = request
  const digest = createHash('sha256').update(canonicalJson(request.input)).digest()
  const [row] = await beginClaim(pool, {
    merchant: merchantId,
    namedOperation: operation,
    givenKey: key,
    givenDigest: digest,
    newOperationId: randomBytes(16),
    leaseMs: idempotencyBounds.leaseMs,
    lifetimeMs: idempotencyKeptMs,
  })
  invariant(row, 'a claim has an outcome')
  const { outcome, operationId, claim, since, answer: kept } = row
  if (outcome === 'running' || outcome === 'reused') return { kind: outcome }
  invariant(operationId && claim !== null && since, 'a begun or answered key has an operation and a claim')
  const aad = `idempotency:${merchantId}:${operation}:${key}:${operationId.toString('hex')}`
  if (outcome === 'answered') {
    invariant(kept, 'an answered key has its answer')
    return { kind: 'answered', answer: decrypt(master.encryptionKey, kept, aad).toString('utf8') }
  }
  const claimed = { merchant: merchantId, namedOperation: operation, givenKey: key, claimed: claim }
  const end = (givenAnswer: Buffer | null, giveBack: boolean) =>
    endClaim(pool, { ...claimed, givenAnswer, giveBack })
  return {
    kind: 'claimed',
    idempotentOperation: {
      id: operationId.toString('hex'),
      name: nameOf(operation, key),
      isResumed: outcome === 'resumed',
      since,
      outcome: 'nothing',
    },
    keep: (answer) => end(encrypt(master.encryptionKey, Buffer.from(answer), aad), false),
    giveBack: () => end(null, true),
    leaveOpen: () => end(null, false),
  }
}

/** Deletes keys that are older than 30 days of service time. @returns whether more of them may be left */
export async function sweepIdempotencyKeys(pool: pg.Pool, most = idempotencySweepMax): Promise<boolean> {
  const swept = await sweepKeys(pool, { lifetimeMs: idempotencyKeptMs, most })
  return swept === BigInt(most)
}

/** The most keys that one call deletes. */
export const idempotencySweepMax = 1_000

/** Makes the name of a request, without the merchant: code that uses the name adds the merchant. */
function nameOf(operation: string, key: string): string {
  return createHash('sha256')
    .update(JSON.stringify([operation, key]))
    .digest('hex')
}

/** Writes JSON with the fields of objects sorted: two inputs that differ only in order give the same text. */
function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_name, part: unknown) => {
    if (typeof part === 'bigint') return String(part)
    if (typeof part !== 'object' || part === null || Array.isArray(part)) return part
    return Object.fromEntries(Object.entries(part).toSorted(([a], [b]) => (a < b ? -1 : 1)))
  })
}
