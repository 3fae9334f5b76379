import { z } from 'zod'
import { actorOf, mine, nameOf } from '../../identity/actor.ts'
import { recordedChange, recordingOf } from '../../audit/audit-log.ts'
import { callerOf, whyTurnedAway } from '../../identity/caller.ts'
import type { Context } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { transact } from '../../database/transact.ts'
import { DomainError } from '../../shared/errors.ts'
import { limits } from '../../shared/limits.ts'
import type { Provider } from '../../shared/providers.ts'
import { recipientsSeed } from '../../requests/identity.ts'
import { noSuchBatch } from './create.ts'
import { countAccounts, warnOfDuplicates } from './duplicates.ts'
import type { BatchChange } from './forecast.ts'
import { findOperators, readRows, recipientColumns, type RecipientInput, tooMany } from './recipients.ts'
import type { BatchStatus } from './states.ts'

/** What it takes (specification: POST /bulk/batches/{id}/recipients). */
export const addRecipientsInput = z.object({
  recipients: z.unknown().refine((given) => given != null, 'is required'),
})

/**
 * Adds recipients to a draft, all or none. One whose account it has already is one more, and warned of.
 * @throws DomainError INVALID_INPUT that names the places, NOT_FOUND, STATE_CONFLICT where it is no draft,
 *   UNAUTHENTICATED
 * @see specification: POST /bulk/batches/{id}/recipients
 */
export async function addRecipients(
  ctx: Context,
  id: number,
  raw: readonly RecipientInput[],
): Promise<BatchChange> {
  const { merchantId, apiKeyId, apiKeyVersion } = callerOf(ctx)
  const usual = await usualMethod(ctx, id)
  const recipients = await findOperators(ctx, await readRows(raw), usual)
  const added = await transact(asPlatform(ctx, 'the SQL function receives the id of the merchant'), (tx) =>
    recordedChange(tx, recordingOf(ctx, 'addRecipients'), ['batch', id], async () => {
      const { rows } = await tx.query<Added>({
        name: 'add_recipients',
        text: `SELECT outcome, status, recipient_count AS "recipientCount"
          FROM add_recipients($1, $2, $3, $4, $5, $6, $7, $8, $9, $10::provider[], $11, $12)`,
        values: [
          merchantId,
          apiKeyId,
          apiKeyVersion,
          nameOf(actorOf(ctx)),
          ctx.effect?.id ?? null,
          id,
          ...recipientColumns(recipients),
          limits.batchRecipientsMax,
          recipientsSeed(ctx),
        ],
      })
      return rows[0]
    }),
  )
  if (!added) throw noSuchBatch()
  switch (added.outcome) {
    case 'unauthenticated':
      throw await whyTurnedAway(ctx)
    case 'conflict':
      throw new DomainError(
        'STATE_CONFLICT',
        `Recipients are added to a draft only: this batch is ${added.status}.`,
      )
    case 'too_many':
      throw tooMany(limits.batchRecipientsMax - added.recipientCount)
    case 'added':
    case 'repeated':
      ctx.sequencer.nudge()
      return { id, warnings: warnOfDuplicates(recipients, await countAccounts(ctx, id, recipients)) }
  }
}

interface Added {
  outcome: 'added' | 'repeated' | 'unauthenticated' | 'conflict' | 'too_many'
  status: BatchStatus
  recipientCount: number
}

/** @throws DomainError NOT_FOUND */
async function usualMethod(ctx: Context, id: number): Promise<Provider | null> {
  const batch = await ctx.database.prisma.batch.findFirst({
    where: { id, ...mine(ctx) },
    select: { paymentMethod: true },
  })
  if (!batch) throw noSuchBatch()
  return batch.paymentMethod
}
