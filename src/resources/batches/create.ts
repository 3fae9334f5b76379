import { sqlFunction, sqlType } from '../../database/sql-function.ts'
import type { PoolClient } from 'pg'
import { z } from 'zod'
import { actorOf, callerOf, nameOf } from '../../identity/callers/actor.ts'
import { recordingOf, recordMade } from '../../audit/audit-log.ts'
import { whyTurnedAway } from '../../identity/callers/credentials.ts'
import type { Context } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { dryRun, transact } from '../../database/transact.ts'
import { DomainError } from '../../shared/errors.ts'
import { readInput, readTogether, text } from '../../shared/input.ts'
import type { Provider } from '../../shared/providers.ts'
import { recipientsSeed } from '../../requests/identity.ts'
import { refuseOtherLostPayments } from '../../requests/lost-payment.ts'
import { warnOfDuplicates } from './duplicates.ts'
import { type BatchChange, completePreview, previewBatch } from './preview.ts'
import {
  findOperators,
  readRows,
  type Recipient,
  recipientArguments,
  recipientInput,
  type RecipientInput,
  recipientMethod,
} from './recipients.ts'

/** The reason why these functions bypass row-level security. */
const reason = 'the SQL function receives the id of the merchant'

export const batchTitleLengthMax = 200

/** The input of a new batch; `readRows` checks its recipients (see docs/design/rules.md#batches). */
export const createBatchInput = z.object({
  title: text({ min: 1, max: batchTitleLengthMax }).nullish(),
  /** The operator of recipients that name none. */
  paymentMethod: recipientMethod.nullish(),
  recipients: z
    .custom<readonly RecipientInput[]>()
    .nullish()
    .meta({ graphql: z.array(recipientInput) }),
})

export type CreateBatchInput = z.input<typeof createBatchInput>

/**
 * Creates a draft with the given recipients, all or none. Recipients with the same account are all kept, with
 * a warning.
 * @throws DomainError INVALID_INPUT that names the recipients by index, STATE_CONFLICT where an operator made
 *   another payment under the same `Idempotency-Key` before a restore, UNAUTHENTICATED
 * @see docs/design/rules.md#batches
 */
export async function createBatch(ctx: Context, raw: CreateBatchInput): Promise<BatchChange> {
  const draft = await readDraft(ctx, raw)
  const { id } = await transact(asPlatform(ctx, reason), (tx) => writeDraft(ctx, tx, draft))
  return { id, warnings: warnOfDuplicates(draft.recipients) }
}

/**
 * Creates the draft in a transaction that is rolled back, and returns the preview: nothing is written.
 * @throws as `createBatch`
 */
export async function dryRunCreate(ctx: Context, raw: CreateBatchInput): Promise<BatchChange> {
  const draft = await readDraft(ctx, raw)
  const base = await dryRun(asPlatform(ctx, reason), async (tx) =>
    previewBatch(ctx, tx, (await writeDraft(ctx, tx, draft)).id),
  )
  const forecast = await completePreview(ctx, base)
  return { id: null, forecast, warnings: warnOfDuplicates(draft.recipients) }
}

export interface Draft {
  title: string | null
  paymentMethod: Provider | null
  recipients: readonly Recipient[]
}

/** Parses the input of a draft and finds the operator of each recipient. @throws DomainError INVALID_INPUT */
export async function readDraft(ctx: Context, raw: CreateBatchInput): Promise<Draft> {
  const [{ title = null, paymentMethod = null }, rows] = await readTogether(
    () => readInput(createBatchInput, raw),
    () => readRows(raw.recipients),
  )
  return { title, paymentMethod, recipients: await findOperators(ctx, rows, paymentMethod) }
}

/** Writes a draft with the given recipients, or with the failed recipients of the batch that is retried. */
export const insertBatch = sqlFunction('create_batch', {
  takes: {
    merchant: 'int',
    credential: 'int',
    credentialVersion: 'int',
    maker: 'text',
    operationId: 'text?',
    title: 'text?',
    method: 'provider?',
    names: 'text[]?',
    accounts: 'text[]?',
    amounts: 'bigint[]?',
    methods: 'provider[]?',
    retried: 'int?',
    seed: 'uuid',
  },
  gives: {
    outcome: sqlType<'made' | 'repeated' | 'unauthenticated' | 'open' | 'nothing' | 'retried'>('text'),
    batchId: 'int',
  },
})

/** Writes a draft and its entry in the audit log. @throws DomainError STATE_CONFLICT, UNAUTHENTICATED */
export async function writeDraft(ctx: Context, tx: PoolClient, draft: Draft): Promise<{ id: number }> {
  const { merchantId, apiKeyId, apiKeyVersion } = callerOf(ctx)
  const [made] = await insertBatch(tx, {
    merchant: merchantId,
    credential: apiKeyId,
    credentialVersion: apiKeyVersion,
    maker: nameOf(actorOf(ctx)),
    operationId: ctx.idempotentOperation?.id,
    title: draft.title,
    method: draft.paymentMethod,
    ...recipientArguments(draft.recipients),
    retried: null,
    seed: recipientsSeed(ctx),
  })
  if (!made || made.outcome === 'unauthenticated') throw await whyTurnedAway(ctx)
  const { batchId: id } = made
  if (made.outcome === 'made') {
    await refuseOtherLostPayments(tx, id)
    await recordMade(tx, recordingOf(ctx, 'createBatch'), ['batch', id])
  }
  return { id }
}

/** Returns the error for a batch that does not exist or belongs to another merchant. */
export function noSuchBatch(): DomainError {
  return new DomainError('NOT_FOUND', 'There is no such batch.')
}
