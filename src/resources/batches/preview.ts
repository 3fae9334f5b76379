import type { PoolClient } from 'pg'
import { mine } from '../../identity/callers/actor.ts'
import type { Context } from '../../context.ts'
import { disbursementFees } from '../../ledger/fees.ts'
import type { CallContext, OperatorDriver } from '../../operators/operator.ts'
import type { FieldProblem } from '../../shared/errors.ts'
import { invariant } from '../../shared/invariant.ts'
import { limits } from '../../shared/limits.ts'
import type { Xof } from '../../shared/money.ts'
import type { Provider } from '../../shared/providers.ts'
import { type Duplicate, readDuplicates } from './duplicates.ts'
import { waits } from '../../shared/waits.ts'

/**
 * The number of lookups that a dry run sends to one operator at once, and the time for which it waits, in ms.
 * Choice: a person waits for the answer, and most of the operator's bulkhead stays free for checks of
 * payments.
 */
const dryRunLookupsAtOnce = 4

/** The result of a call that changed a batch, or of its dry run. */
export interface BatchChange {
  /** The id of the batch; null after the dry run of a creation, which leaves no batch. */
  id: number | null
  /** Accepted input that may be a mistake. */
  warnings?: readonly FieldProblem[]
  /** The preview, if the call was a dry run. */
  forecast?: BatchPreview
}

/** The part of a preview that comes from the database. */
interface PreviewBase {
  recipientCount: number
  totalAmount: Xof
  fees: Xof
  availableNow: Xof
  /** The available balance after the reservation; negative where the balance is too low. */
  availableAfter: Xof
  approvalRequired: boolean
  operators: readonly OperatorShare[]
  duplicates: readonly Duplicate[]
}

/** The preview of a batch: its result if it were processed now. */
export interface BatchPreview extends PreviewBase {
  /** Phone numbers for which the operator has no account. */
  unknownNumbers: readonly string[]
  /** The number of lookups that the operators answered. */
  numbersChecked: number
  /** Operators of the batch that offer no lookup of phone numbers. */
  operatorsWithoutLookup: readonly Provider[]
  /** Operators of the batch that cannot take payments now. */
  operatorsDown: readonly Provider[]
}

/** The recipients of a batch that one operator would pay. */
export interface OperatorShare {
  paymentMethod: Provider
  recipientCount: number
  totalAmount: Xof
  /** The distinct phone numbers in the order in which they were added, at most `dryRunLookupsMax`. */
  accounts: readonly string[]
}

/**
 * Reads the preview of a draft in the caller's transaction, which may have just created the draft.
 * @returns null where the merchant has no such batch
 */
export async function previewBatch(ctx: Context, tx: PoolClient, id: number): Promise<PreviewBase | null> {
  const { merchantId } = mine(ctx)
  const { rows } = await tx.query<Omit<PreviewBase, 'fees' | 'availableAfter' | 'operators' | 'duplicates'>>({
    name: 'preview_batch',
    text: `SELECT b.recipient_count AS "recipientCount", b.total_amount AS "totalAmount",
        o.available AS "availableNow",
        m.payouts_require_approval AND b.total_amount >= m.approval_threshold AS "approvalRequired"
      FROM batch b JOIN merchant m ON m.id = b.merchant_id JOIN merchant_balance o ON o.merchant_id = m.id
      WHERE b.id = $1 AND b.merchant_id = $2`,
    values: [id, merchantId],
  })
  const [summary] = rows
  if (!summary) return null
  const { totalAmount, availableNow } = summary
  const fees = disbursementFees(totalAmount)
  const { rows: operators } = await tx.query<OperatorShare>({
    name: 'preview_operators',
    text: `SELECT payment_method AS "paymentMethod", sum(count)::int AS "recipientCount",
        sum(amount)::bigint AS "totalAmount", (array_agg(account ORDER BY first))[:$3] AS accounts
      FROM (
        SELECT payment_method, account, count(*) AS count, sum(amount) AS amount, min(id) AS first
        FROM batch_recipient WHERE batch_id = $1 AND merchant_id = $2 GROUP BY payment_method, account
      ) AS r
      GROUP BY payment_method ORDER BY payment_method`,
    values: [id, merchantId, limits.dryRunLookupsMax],
  })
  const duplicates = (await readDuplicates(tx, merchantId, [id])).get(id) ?? []
  return { ...summary, fees, availableAfter: availableNow - totalAmount - fees, operators, duplicates }
}

/** Adds the operators' answers to a preview. It runs after the transaction, because it calls operators. */
export async function completePreview(ctx: Context, base: PreviewBase | null): Promise<BatchPreview> {
  invariant(base, 'the dry run found its batch')
  const operatorsWithoutLookup: Provider[] = []
  const operatorsDown: Provider[] = []
  const lookups: Promise<Lookups>[] = []
  for (const { paymentMethod, accounts } of base.operators) {
    const operator = ctx.operators.find(paymentMethod)
    if (!operator || operator.availability('disburse') === 'down') operatorsDown.push(paymentMethod)
    if (operator?.lookupParty) lookups.push(lookUp(ctx, operator.lookupParty, accounts))
    else operatorsWithoutLookup.push(paymentMethod)
  }
  const found = await Promise.all(lookups)
  return {
    ...base,
    unknownNumbers: found.flatMap(({ unknown }) => unknown),
    numbersChecked: found.reduce((sum, { checked }) => sum + checked, 0),
    operatorsWithoutLookup,
    operatorsDown,
  }
}

interface Lookups {
  unknown: string[]
  checked: number
}

/** Asks an operator about phone numbers, four at once, until `lookupsMs` is over or the service ends. */
async function lookUp(
  ctx: Context,
  ask: NonNullable<OperatorDriver['lookupParty']>,
  accounts: readonly string[],
): Promise<Lookups> {
  const found: Lookups = { unknown: [], checked: 0 }
  const over = AbortSignal.any([ctx.ending, AbortSignal.timeout(waits.lookupsMs)])
  const left = accounts.values()
  async function work(): Promise<void> {
    for (const account of left) {
      if (over.aborted) return
      const { kind } = await ask(account, callContext())
      if (over.aborted) return
      if (kind !== 'unreachable') found.checked += 1
      if (kind === 'absent') found.unknown.push(account)
    }
  }
  // A lookup keeps its usual deadline, even if the dry run stops waiting earlier: a short deadline would
  // count as a failure of the operator.
  const callContext = (): CallContext => ({
    deadline: new Date(Date.now() + limits.operatorQueryDeadlineMs),
    priority: 'background',
    record: () => {},
  })
  const workers = Promise.all(Array.from({ length: dryRunLookupsAtOnce }, work))
  await Promise.race([
    workers,
    new Promise((resolve) => over.addEventListener('abort', resolve, { once: true })),
  ])
  return { unknown: [...found.unknown], checked: found.checked }
}
