import { z } from 'zod'
import { addRecipientsInput } from '../../resources/batches/add-recipients.ts'
import { createBatchInput } from '../../resources/batches/create.ts'
import { recipientFilterInput } from '../../resources/batches/recipient-pages.ts'
import { readRows } from '../../resources/batches/recipients.ts'
import type { FieldProblem } from '../../shared/errors.ts'
import { amount, currencyField, readInput, readTogether, truth } from '../../shared/input.ts'
import { limits } from '../../shared/limits.ts'
import {
  bareList,
  body,
  idOf,
  inSchemaWords,
  largeBody,
  pageOptions,
  type RestRequest,
  type RestRoute,
  withoutNulls,
} from './route.ts'

const dryRunInput = z.object({ dryRun: truth.default(false) })
const processInput = dryRunInput.extend({
  expectedTotal: amount({ min: 0, max: Number.MAX_SAFE_INTEGER }).nullish(),
})
const xof = { currency: currencyField.nullish() }
const createInput = createBatchInput.extend({ ...dryRunInput.shape, ...xof })
const addInput = addRecipientsInput.extend(xof)
/** A body that is checked later, together with its recipients. */
const unjudged = z.record(z.string(), z.unknown())

const create: RestRoute = {
  method: 'POST',
  path: '/bulk/batches',
  status: 201,
  operation: 'CreateBatch',
  hasDryRun: true,
  bodyMaxBytes: limits.recipientsBodyMaxBytes,
  variables: async (request) => {
    const sent = await largeBody(request, unjudged)
    const [{ currency: _xof, dryRun, ...input }, recipients] = await readTogether(
      () => readInput(createInput, sent),
      () => readRows(sent['recipients'], inRowWords),
    )
    return { dryRun: isDryRun(request, dryRun), input: { ...input, recipients } }
  },
  location: ({ batch }: Changed) => batch && `/bulk/batches/${batch.id}`,
  data: batchData,
  statusOf: ({ dryRun }: Changed) => (dryRun ? 200 : 201),
}

export const bulkRoutes: readonly RestRoute[] = [
  create,
  {
    ...create,
    path: '/bulk/batches/import',
    // The reader is loaded with the first file.
    form: async (ctx, message) => (await import('../import/batch-form.ts')).readBatchForm(ctx, message),
  },
  {
    method: 'GET',
    path: '/bulk/batches/{id}',
    status: 200,
    operation: 'Batch',
    variables: idOf,
    data: summary,
  },
  {
    method: 'POST',
    path: '/bulk/batches/{id}/recipients',
    status: 200,
    operation: 'AddRecipients',
    bodyMaxBytes: limits.recipientsBodyMaxBytes,
    variables: async (request) => {
      const { recipients } = await largeBody(request, addInput)
      return { ...idOf(request), recipients: await readRows(recipients, inRowWords) }
    },
    data: batchData,
  },
  {
    method: 'GET',
    path: '/bulk/batches/{id}/recipients',
    status: 200,
    operation: 'BatchRecipients',
    variables: async (request) => ({
      ...idOf(request),
      ...(await pageOptions(request, recipientFilterInput)),
    }),
    data: ({ recipients }: Recipients) => recipients.nodes.map(withoutNulls),
    list: ({ recipients }: Recipients, page: { limit: number; offset: number }) =>
      bareList.list(recipients, page),
  },
  {
    method: 'POST',
    path: '/bulk/batches/{id}/process',
    status: 202,
    operation: 'ProcessBatch',
    hasDryRun: true,
    variables: (request) => {
      const { dryRun, expectedTotal } = body(request, processInput)
      return { ...idOf(request), dryRun: isDryRun(request, dryRun), expectedTotal }
    },
    data: batchData,
    statusOf: ({ dryRun }: Changed) => (dryRun ? 200 : 202),
  },
  {
    method: 'POST',
    path: '/bulk/batches/{id}/cancel',
    status: 200,
    operation: 'CancelBatch',
    variables: idOf,
    data: () => undefined,
  },
]

/**
 * Returns a recipient under the schema's names; a value that is no object stays as it is and is refused
 * later.
 */
function inRowWords(row: unknown): unknown {
  const isObject = typeof row === 'object' && row !== null && !Array.isArray(row)
  return isObject ? inSchemaWords(Object.entries(row)) : row
}

/** A page of the recipients of a batch. */
interface Recipients {
  recipients: { totalCount: number; nodes: readonly object[] }
}

/**
 * True if the address, the body or the form asks for a dry run. One of them is enough, also among several
 * parameters, so that no payment is made by mistake.
 * @throws DomainError INVALID_INPUT
 */
function isDryRun(request: RestRequest, isInBody: boolean): boolean {
  const sent = request.query.getAll('dry_run').map((dryRun) => readInput(dryRunInput, { dryRun }).dryRun)
  return sent.includes(true) || isInBody
}

/** The result of a change of a batch, or of its dry run. */
interface Changed {
  batch: { id: number } | null
  dryRun?: object | null
  warnings?: readonly FieldProblem[]
}

/** Writes the summary of a batch or of its dry run, and warnings of possible mistakes in the request. */
function batchData(
  { batch, dryRun, warnings = [] }: Changed,
  _variables: object,
  { form }: RestRequest,
): object {
  const shownWarnings = form ? [...form.warnings, ...warnings.map(form.locate)] : warnings
  return { ...summary(dryRun ?? batch ?? {}), ...(shownWarnings.length > 0 && { warnings: shownWarnings }) }
}

/**
 * Writes a batch in the form of REST. The approval is shown only where one is required. `processed_at` is
 * shown even while it is null, before the batch has ended, so that a client can wait for it.
 */
function summary({
  approval,
  ...rest
}: {
  approval?: { status: string; expires_at: string | null }
  processed_at?: string | null
}): object {
  const isAsked = approval !== undefined && approval.status !== 'not_required'
  return {
    ...withoutNulls({
      ...rest,
      ...(isAsked && { approval: approval.status, approval_expires_at: approval.expires_at }),
    }),
    ...('processed_at' in rest && { processed_at: rest.processed_at }),
  }
}
