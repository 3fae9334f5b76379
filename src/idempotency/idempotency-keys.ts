import { createHash, randomBytes } from 'node:crypto'
import type pg from 'pg'
import { invariant } from '../shared/invariant.ts'
import type { MasterSecret } from '../identity/secrets.ts'
import { encrypt, decrypt } from '../identity/encrypt.ts'
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

/** Choice: longer than a deposit waits for its operator; run twice it makes one thing anyway. */
export const idempotencyBounds = { leaseMs: 25_000 }

/** How long an answer is kept under its idempotency key (see docs/design/rules.md#idempotency). */
const idempotencyKeptMs = 30 * 24 * 3_600_000

/** What a merchant sent under an `Idempotency-Key`; a key belongs to one merchant and one operation. */
export interface KeyedRequest {
  merchantId: number
  operation: string
  key: string
  /** Whatever the operation depends on, as JSON: another input under the same key is refused. */
  input: unknown
}

/** What one request does, once, however often it is begun. */
export interface IdempotentOperation {
  /** 32 hexadecimal digits: what the request makes takes its identity from it. */
  readonly id: string
  /**
   * 64 hexadecimal digits that name the request itself: operation, key and input. The same request has the
   * same name also after a restore that lost the claim, whereas `id` is drawn anew then.
   */
  readonly name: string
  /** Somebody began it before and never said how it ended: what it makes may be there already. */
  readonly isResumed: boolean
  /** Service time of its first beginning. */
  readonly since: Date
  /** What has come of it: nothing was written, it is done, or nobody knows. */
  outcome: 'nothing' | 'done' | 'unknown'
}

export type Claim =
  | {
      kind: 'claimed'
      idempotentOperation: IdempotentOperation
      /** Keeps the answer for those who repeat the request. */
      keep(answer: string): Promise<void>
      /** The key was never used. */
      giveBack(): Promise<void>
      /** The next one goes on with the same effect. */
      leaveOpen(): Promise<void>
    }
  | { kind: 'answered'; answer: string }
  | { kind: 'running' }
  | { kind: 'reused' }

/**
 * Takes the right to run a request that came with an `Idempotency-Key`: of all who ask at once, on all nodes,
 * one gets it. Who has it must end it. A holder that died is believed to be at it for
 * `idempotencyBounds.leaseMs`; whoever comes then goes on with the same effect, so that even two at once
 * make one thing.
 * The answer is kept sealed: it may hold a secret that is shown once.
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
  invariant(operationId && claim !== null && since, 'what was begun has an effect')
  const aad = `idempotency:${merchantId}:${operation}:${key}:${operationId.toString('hex')}`
  if (outcome === 'answered') {
    invariant(kept, 'what was answered has an answer')
    return { kind: 'answered', answer: decrypt(master.encryptionKey, kept, aad).toString('utf8') }
  }
  const claimed = { merchant: merchantId, namedOperation: operation, givenKey: key, claimed: claim }
  const end = (givenAnswer: Buffer | null, giveBack: boolean) =>
    endClaim(pool, { ...claimed, givenAnswer, giveBack })
  return {
    kind: 'claimed',
    idempotentOperation: {
      id: operationId.toString('hex'),
      name: nameOf(operation, key, digest),
      isResumed: outcome === 'resumed',
      since,
      outcome: 'nothing',
    },
    keep: (answer) => end(encrypt(master.encryptionKey, Buffer.from(answer), aad), false),
    giveBack: () => end(null, true),
    leaveOpen: () => end(null, false),
  }
}

/** Forgets the keys that are older than 30 days of service time. @returns whether more of them may be left */
export async function sweepIdempotencyKeys(pool: pg.Pool): Promise<boolean> {
  const swept = await sweepKeys(pool, { lifetimeMs: idempotencyKeptMs, most: sweepBatch })
  return swept === BigInt(sweepBatch)
}

const sweepBatch = 1_000

/** The merchant is not part of it: whoever uses the name adds it. */
function nameOf(operation: string, key: string, digest: Buffer): string {
  const parts = JSON.stringify([operation, key, digest.toString('hex')])
  return createHash('sha256').update(parts).digest('hex')
}

/** JSON in which the order of an object's fields says nothing. */
function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_name, part: unknown) => {
    if (typeof part === 'bigint') return String(part)
    if (typeof part !== 'object' || part === null || Array.isArray(part)) return part
    return Object.fromEntries(Object.entries(part).toSorted(([a], [b]) => (a < b ? -1 : 1)))
  })
}
