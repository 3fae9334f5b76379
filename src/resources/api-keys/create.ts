import type { PoolClient } from 'pg'
import { z } from 'zod'
import { actorOf, nameOf } from '../../identity/callers/actor.ts'
import { createApiKey, type IssuedKey } from '../../identity/keys/api-keys.ts'
import { recordingOf, recordMade } from '../../audit/audit-log.ts'
import { keyLimitsInput } from '../../identity/keys/key-limits.ts'
import { scopes } from '../../identity/callers/scopes.ts'
import { prefixOf } from '../../identity/secrets/secrets.ts'
import type { Context } from '../../context.ts'
import type { ApiKeyCreatedData } from '../../events/catalogue.ts'
import { DomainError } from '../../shared/errors.ts'
import { invalidInput, oneOf, readInput, text } from '../../shared/input.ts'
import { time } from '../../shared/time.ts'
import { limits } from '../../shared/limits.ts'
import { asIssuer, checkGrants } from './issue.ts'
import { recordAccess } from '../../identity/changes/record-access.ts'

/** The longest life of an API key: ten years of 366 days. Choice. */
const apiKeyLifetimeMaxMs = 10 * 366 * 24 * 3_600_000
export const apiKeyNameLengthMax = 100

export const createApiKeyInput = z.object({
  name: text({ min: 1, max: apiKeyNameLengthMax }),
  scopes: z
    .array(oneOf(scopes), 'must be a list of scopes')
    .min(1, 'must name a scope')
    .transform((names) => [...new Set(names)]),
  expiresAt: time.nullish(),
  limits: keyLimitsInput.nullish(),
})
type CreateApiKeyInput = z.input<typeof createApiKeyInput>

/**
 * Creates another API key for the merchant and emits `api_key_created`. The key grants no scope that its
 * issuer does not hold. A key that an API key issues expires no later than that API key.
 * @param raw.expiresAt real time, not the sandbox's clock; left out, the key expires with the API key that
 *   issues it, or never
 * @param raw.limits the limits of its tokens, which never change (see `KeyLimitSet`)
 * @returns both halves of the key; the secret half cannot be read again later
 * @throws DomainError INVALID_INPUT, FORBIDDEN, STATE_CONFLICT where the merchant has too many keys,
 *   UNAUTHENTICATED
 * @see docs/design/rules.md#sign-in-and-tokens
 */
export async function createMerchantKey(ctx: Context, raw: CreateApiKeyInput): Promise<IssuedKey> {
  const { name, limits: keyLimits = null, ...input } = readInput(createApiKeyInput, raw)
  checkGrants(ctx, input.scopes)
  const { merchantId } = actorOf(ctx)
  return asIssuer(ctx, async (tx, issuer) => {
    const expiresAt = input.expiresAt ?? issuer.expiresAt
    if (expiresAt && issuer.expiresAt && expiresAt > issuer.expiresAt) {
      const message = `must not be after ${issuer.expiresAt.toISOString()}, when the creating key expires`
      throw invalidInput([{ field: 'expiresAt', message }])
    }
    const made = await createApiKey(tx, ctx.access.master, {
      merchantId,
      name,
      scopes: input.scopes,
      expiresAt,
      keyLimits,
      issuedToId: issuer.memberId,
      operationId: ctx.idempotentOperation?.id ?? null,
    })
    if (!made.isNew) return made
    checkLifetime(input.expiresAt)
    await checkCount(tx, merchantId)
    await emitCreated(tx, ctx, made, input.scopes)
    await recordMade(tx, recordingOf(ctx, 'createApiKey'), ['api_key', made.apiKeyId])
    return made
  })
}

/**
 * Refuses an expiry that is past or too far ahead. The schema of the input knows no clock: a request under an
 * `Idempotency-Key` means the same at its repetition, after the key expired.
 * @throws DomainError INVALID_INPUT
 */
function checkLifetime(expiresAt: Date | null | undefined): void {
  if (!expiresAt) return
  const ahead = expiresAt.getTime() - Date.now()
  const refuse = (message: string) => invalidInput([{ field: 'expiresAt', message }])
  if (ahead <= 0) throw refuse('must be in the future')
  if (ahead > apiKeyLifetimeMaxMs) throw refuse('must be at most ten years ahead')
}

/**
 * Refuses a key beyond the maximum. The count stays exact: `asIssuer` holds the lock on the account's access,
 * so that no other transaction adds a key at the same time.
 * @throws DomainError STATE_CONFLICT
 */
async function checkCount(tx: PoolClient, merchantId: number): Promise<void> {
  const { rowCount } = await tx.query(
    `SELECT FROM api_key WHERE merchant_id = $1 AND revoked_at IS NULL
       AND coalesce(expires_at > now(), true) LIMIT $2`,
    [merchantId, limits.apiKeysMax + 1],
  )
  if ((rowCount ?? 0) <= limits.apiKeysMax) return
  const message = `An account can have ${limits.apiKeysMax} API keys at most. Revoke one first.`
  throw new DomainError('STATE_CONFLICT', message)
}

/** Emits `api_key_created` for a key that was created or regenerated. */
export async function emitCreated(
  tx: PoolClient,
  ctx: Context,
  { apiKeyId, key }: IssuedKey,
  granted: readonly string[],
): Promise<void> {
  const actor = actorOf(ctx)
  const data: ApiKeyCreatedData = {
    api_key_id: apiKeyId,
    prefix: prefixOf(key),
    scopes: granted,
    created_by: nameOf(actor),
  }
  await recordAccess(tx, { merchant: actor.merchantId, kind: 'api_key_created', what: data })
}
