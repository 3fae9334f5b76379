import { sqlFunction, sqlType } from '../../database/sql-function.ts'
import { z } from 'zod'
import { actorOf, callerOf, mine, nameOf } from '../../identity/callers/actor.ts'
import { recordedChange, recordingOf } from '../../audit/audit-log.ts'
import { whyTurnedAway } from '../../identity/callers/credentials.ts'
import type { Context } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { transact } from '../../database/transact.ts'
import { DomainError } from '../../shared/errors.ts'
import { limits } from '../../shared/limits.ts'
import type { Provider } from '../../shared/providers.ts'
import { recipientsSeed } from '../../requests/identity.ts'
import { refuseOtherLostPayments } from '../../requests/lost-payment.ts'
import { noSuchBatch } from './create.ts'
import { countAccounts, warnOfDuplicates } from './duplicates.ts'
import type { BatchChange } from './preview.ts'
import {
  findOperators,
  readRows,
  recipientArguments,
  recipientTypes,
  type RecipientInput,
  tooMany,
} from './recipients.ts'
import type { BatchStatus } from './states.ts'

/** The input of `addRecipients` (see docs/design/rules.md#batches). */
export const addRecipientsInput = z.object({
  recipients: z.unknown().refine((given) => given != null, 'is required'),
})

/**
 * Adds recipients to a draft, all or none. A recipient with an account that the draft already has is added
 * too, with a warning.
 * @throws DomainError INVALID_INPUT that names the recipients by index, NOT_FOUND, STATE_CONFLICT where the
 *   batch is not a draft, or where an operator made another payment under the same `Idempotency-Key` before a
 *   restore, UNAUTHENTICATED
 * @see docs/design/rules.md#batches
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
      const [found] = await appendRecipients(tx, {
        merchant: merchantId,
        credential: apiKeyId,
        credentialVersion: apiKeyVersion,
        adder: nameOf(actorOf(ctx)),
        operationId: ctx.idempotentOperation?.id,
        batch: id,
        ...recipientArguments(recipients),
        countMax: limits.batchRecipientsMax,
        seed: recipientsSeed(ctx),
      })
      if (found?.outcome === 'added') await refuseOtherLostPayments(tx, id)
      return found
    }),
  )
  if (!added) throw noSuchBatch()
  switch (added.outcome) {
    case 'unauthenticated':
      throw await whyTurnedAway(ctx)
    case 'conflict':
      throw new DomainError(
        'STATE_CONFLICT',
        `Recipients can be added to a draft only. This batch is ${added.status}.`,
      )
    case 'too_many':
      throw tooMany(limits.batchRecipientsMax - added.recipientCount)
    case 'added':
    case 'repeated':
      return { id, warnings: warnOfDuplicates(recipients, await countAccounts(ctx, id, recipients)) }
  }
}

/** Writes recipients to a draft; see add_recipients.sql. */
export const appendRecipients = sqlFunction('add_recipients', {
  takes: {
    merchant: 'int',
    credential: 'int',
    credentialVersion: 'int',
    adder: 'text',
    operationId: 'text?',
    batch: 'int',
    ...recipientTypes,
    countMax: 'int',
    seed: 'uuid',
  },
  gives: {
    outcome: sqlType<'added' | 'repeated' | 'unauthenticated' | 'conflict' | 'too_many'>('text'),
    status: sqlType<BatchStatus>('batch_status'),
    recipientCount: 'int',
  },
})

/** Reads the default operator of a batch. @throws DomainError NOT_FOUND */
async function usualMethod(ctx: Context, id: number): Promise<Provider | null> {
  const batch = await ctx.database.prisma.batch.findFirst({
    where: { id, ...mine(ctx) },
    select: { paymentMethod: true },
  })
  if (!batch) throw noSuchBatch()
  return batch.paymentMethod
}
