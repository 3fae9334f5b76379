import { asPlatform } from '../database/as-platform.ts'
import type { Actor } from '../identity/actor.ts'
import { type Claim, claimKey } from '../idempotency/idempotency-keys.ts'
import type { Context } from '../context.ts'
import { DomainError } from '../shared/errors.ts'

/**
 * Length of an `Idempotency-Key` (see docs/design/rules.md#idempotency), and the pause while its first
 * request runs.
 */
const idempotencyKeyLengthMax = 255
const idempotencyRetryS = 1

/** What a write answers, in a form that can be kept: a JSON body. */
export interface WriteAnswer {
  status: number
  body: unknown
}

/** A write that came with an `Idempotency-Key`. */
export interface IdempotentWrite {
  /** The header. */
  key: string | readonly string[]
  /** Keys of one operation say nothing about another. */
  operation: string
  /** All that its effect depends on. */
  input: unknown
  /** Whether the answer may show a secret. */
  showsSecret: boolean
}

/**
 * Runs a write once per `Idempotency-Key`, whoever repeats it and wherever; where nobody is signed in it just
 * runs. A repeat gets the kept answer as it went out, its `X-Request-Id`
 * included, and `Idempotent-Replayed: true`.
 * An answer is kept once something was written: what was refused before that leaves the key free. Of what
 * broke in between nothing is kept either: a repeat goes on with the same effect, and finds what was made;
 * one that is refused leaves that to the next.
 * An answer that shows a secret is replayed only to the credential that received it, with the same rights:
 * for any other the request is another one under a used key.
 * @throws DomainError INVALID_INPUT, IDEMPOTENCY_KEY_REUSED, IDEMPOTENCY_KEY_BUSY, and whatever `run` throws
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
    // What was done stays done: that it could not be noted must not hide it.
    await end(ctx, claim, answer).catch((error: unknown) =>
      ctx.log.error({ err: error, operation }, 'the end of an idempotent request was not noted'),
    )
  }
}

/**
 * What of the caller belongs to the request itself. A person is not told what another person was told; a
 * program is told what another program of the merchant was told, unless that is a secret.
 */
function askerOf(actor: Actor, showsSecret: boolean): object | null {
  const { memberId, apiKeyId, apiKeyVersion, scopes, keyLimits } = actor
  if (!showsSecret) return memberId === null ? null : { memberId }
  const credential = memberId === null ? { apiKeyId, apiKeyVersion } : { memberId }
  return { ...credential, scopes: [...scopes].toSorted(), keyLimits }
}

/** @throws DomainError INVALID_INPUT that names the header */
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
  // What was begun before may be there, whatever this time was refused for.
  if (outcome === 'nothing') return claim.idempotentOperation.isResumed ? claim.leaveOpen() : claim.giveBack()
  if (answer === null || answer.status >= 500) return claim.leaveOpen()
  // How much of a limit is left is true of one moment only.
  const headers = [...ctx.responseHeaders].filter(([name]) => !name.startsWith('RateLimit'))
  const kept: Kept = { ...answer, headers: [...headers, ['X-Request-Id', ctx.requestId]] }
  return claim.keep(JSON.stringify(kept))
}

function replay(ctx: Context, { status, body, headers }: Kept): WriteAnswer {
  for (const [name, value] of headers) ctx.responseHeaders.set(name, value)
  ctx.responseHeaders.set('Idempotent-Replayed', 'true')
  ctx.log.info({ first: ctx.responseHeaders.get('X-Request-Id') }, 'an answer was replayed')
  return { status, body }
}
