import { asPlatform } from '../database/as-platform.ts'
import type { Actor } from '../identity/callers/actor.ts'
import { type Claim, claimKey } from '../idempotency/idempotency-keys.ts'
import type { Context } from '../context.ts'
import { DomainError } from '../shared/errors.ts'

/**
 * The longest `Idempotency-Key` (see docs/design/rules.md#idempotency), and the seconds after which a client
 * may repeat a request whose first one is still running.
 */
export const idempotencyKeyLengthMax = 255
const idempotencyRetryS = 1

/** The answer of a write, in a form that can be stored: a JSON body. */
export interface WriteAnswer {
  status: number
  body: unknown
}

/** A write that came with an `Idempotency-Key`. */
export interface IdempotentWrite {
  key: string | readonly string[]
  /** The mutation that REST and GraphQL both run: a key that one of them took is used up for the other. */
  operation: string
  /** All values on which the effect of the write depends. */
  input: unknown
  /** Whether the answer may show a secret. */
  showsSecret: boolean
}

/**
 * Runs a write once per `Idempotency-Key`, even where the request is repeated on several processes; for an
 * anonymous caller the write just runs. A repetition gets the kept answer as it was sent, its `X-Request-Id`
 * included, with `Idempotent-Replayed: true`. An answer is kept once the write has written something: a
 * refusal before that leaves the key free. If an error leaves the outcome open, no answer is kept: a
 * repetition continues the same operation and finds the rows that were made. If that repetition is refused, a
 * later one can still continue. An answer that shows a secret is replayed only to the credential that
 * received it, with the same rights: for any other caller it is a different request under a used key.
 * @throws DomainError INVALID_INPUT, IDEMPOTENCY_KEY_REUSED, IDEMPOTENCY_KEY_BUSY, and every error of `run`
 * @see docs/design/rules.md#idempotency
 */
export async function answerOnce(
  ctx: Context,
  { key: header, operation, input, showsSecret }: IdempotentWrite,
  run: (ctx: Context) => Promise<WriteAnswer>,
): Promise<WriteAnswer> {
  if (ctx.actor === null) return run(ctx)
  const { merchantId } = ctx.actor
  const key = readKey(String(header))
  const asker = askerOf(ctx.actor, showsSecret)
  const request = { merchantId, operation, key, input: asker ? { ...asker, input } : input }
  const claim = await claimKey(
    asPlatform(ctx, 'the SQL function receives the id of the merchant').pool,
    ctx.access.master,
    request,
  )
  if (claim.kind === 'reused') throw new DomainError('IDEMPOTENCY_KEY_REUSED')
  if (claim.kind === 'running') {
    throw new DomainError('IDEMPOTENCY_KEY_BUSY', undefined, { retryAfterS: idempotencyRetryS })
  }
  if (claim.kind === 'answered') return replay(ctx, JSON.parse(claim.answer) as Kept)
  let answer: WriteAnswer | null = null
  try {
    answer = await run({ ...ctx, idempotentOperation: claim.idempotentOperation })
    return answer
  } finally {
    // The write stays done: a failure to record its end must not hide the answer.
    await end(ctx, claim, answer).catch((error: unknown) =>
      ctx.log.error({ err: error, operation }, 'the result of an idempotent request was not recorded'),
    )
  }
}

/**
 * Returns the part of the caller that must be the same in a repetition. The kept answer to a person is sent
 * again only to that person; the kept answer to a program, to every program of the merchant. An answer that
 * shows a secret is sent again only to the same person or key, with the same rights.
 */
function askerOf(actor: Actor, showsSecret: boolean): object | null {
  const { memberId, apiKeyId, apiKeyVersion, scopes, keyLimits } = actor
  if (!showsSecret) return memberId === null ? null : { memberId }
  const credential = memberId === null ? { apiKeyId, apiKeyVersion } : { memberId }
  return { ...credential, scopes: [...scopes].toSorted(), keyLimits }
}

/** Checks the key. @throws DomainError INVALID_INPUT that names the header */
function readKey(header: string): string {
  if (header.length <= idempotencyKeyLengthMax && /^[\x20-\x7e]+$/.test(header)) return header
  const message = `must have 1 to ${idempotencyKeyLengthMax} printable ASCII characters`
  throw new DomainError('INVALID_INPUT', `Idempotency-Key ${message}.`, {
    problems: [{ field: 'idempotency-key', message }],
  })
}

interface Kept extends WriteAnswer {
  headers: readonly [name: string, value: string][]
}

async function end(
  ctx: Context,
  claim: Extract<Claim, { kind: 'claimed' }>,
  answer: WriteAnswer | null,
): Promise<void> {
  const { outcome } = claim.idempotentOperation
  // An earlier try may have made rows, even where this one was refused.
  if (outcome === 'nothing') return claim.idempotentOperation.isResumed ? claim.leaveOpen() : claim.giveBack()
  // A cookie is for one browser at one moment: an answer with one is never sent again, but made anew.
  const isForOneBrowser = ctx.responseHeaders.has('Set-Cookie')
  if (answer === null || answer.status >= 500 || isForOneBrowser) return claim.leaveOpen()
  // The remaining requests of a rate limit are true only at one moment, so they are not kept.
  const headers = [...ctx.responseHeaders].filter(([name]) => !name.startsWith('RateLimit'))
  const kept: Kept = { ...answer, headers: [...headers, ['X-Request-Id', ctx.requestId]] }
  return claim.keep(JSON.stringify(kept))
}

function replay(ctx: Context, { status, body, headers }: Kept): WriteAnswer {
  for (const [name, value] of headers) ctx.responseHeaders.set(name, value)
  ctx.responseHeaders.set('Idempotent-Replayed', 'true')
  ctx.log.info({ first: ctx.responseHeaders.get('X-Request-Id') }, 'an earlier answer was sent again')
  return { status, body }
}
