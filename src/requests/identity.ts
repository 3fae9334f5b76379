import { randomUUID } from 'node:crypto'
import type { Database } from '../database/client.ts'
import { sqlFunction } from '../database/sql-function.ts'
import type { IdempotentOperation } from '../idempotency/idempotency-keys.ts'
import { type Actor, actorOf } from '../identity/callers/actor.ts'
import type { Access } from '../identity/callers/authenticate.ts'
import { operatorIdentity } from '../identity/secrets/operator-identities.ts'

/** The caller of a new request, and its idempotent operation if an `Idempotency-Key` came with it. */
interface Asking {
  actor: Actor | null
  idempotentOperation: IdempotentOperation | null
  access: Pick<Access, 'master'>
  database: Pick<Database, 'pool'>
}

const freeIdentity = sqlFunction('free_identity', { takes: { candidate: 'uuid' }, gives: 'uuid' })

/**
 * Returns the identity under which an operator is asked for a new collection, deposit or payout. It is
 * derived from the merchant's reference. Without a reference it is derived from the request that came with an
 * `Idempotency-Key`, so that a repetition after a restore uses the same identity. Otherwise it is random: an
 * identity derived from the row's id could be given to another payment, because ids are used again after a
 * restore.
 * @param reference as the merchant gave it; null where the service makes one
 */
export async function identityOf(
  ctx: Asking,
  kind: 'collect' | 'disburse' | 'payout',
  reference: string | null | undefined,
): Promise<string> {
  const { merchantId } = actorOf(ctx)
  const { master } = ctx.access
  if (reference != null)
    return operatorIdentity(master, { merchantId, kind, by: 'reference', name: reference })
  if (!ctx.idempotentOperation) return randomUUID()
  const derived = operatorIdentity(master, {
    merchantId,
    kind,
    by: 'request',
    name: ctx.idempotentOperation.name,
  })
  return freeIdentity(ctx.database.pool, { candidate: derived })
}

/**
 * Returns the seed of the identities of a batch's new recipients. Each identity is derived from the seed and
 * the recipient's index in the call.
 */
export function recipientsSeed(ctx: Asking): string {
  if (!ctx.idempotentOperation) return randomUUID()
  const { merchantId } = actorOf(ctx)
  return operatorIdentity(ctx.access.master, {
    merchantId,
    kind: 'recipients',
    by: 'request',
    name: ctx.idempotentOperation.name,
  })
}
