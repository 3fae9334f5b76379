import type { PoolClient } from 'pg'
import { mine } from '../../identity/actor.ts'
import type { Context } from '../../context.ts'
import { disbursementFees } from '../../ledger/fees.ts'
import type { CallContext, OperatorDriver } from '../../operators/operator.ts'
import type { FieldProblem } from '../../shared/errors.ts'
import { invariant } from '../../shared/invariant.ts'
import { limits } from '../../shared/limits.ts'
import type { Xof } from '../../shared/money.ts'
import type { Provider } from '../../shared/providers.ts'
import { type Duplicate, readDuplicates } from './duplicates.ts'

/**
 * Numbers that a dry run asks an operator about at once, and how long it waits. Choice: what a person waits
 * for; the operator's questions about payments keep most of their lane.
 */
const dryRunLookupsAtOnce = 4
const dryRunLookupMs = 3_000

/** What a call did to a batch, or would do. */
export interface BatchChange {
  /** Null where there is none: the call was a dry run. */
  id: number | null
  /** What of the call is taken, and may be a mistake. */
  warnings?: readonly FieldProblem[]
  /** Of a dry run. */
  forecast?: BatchPreview
}

/** What a batch would come to, as the database knows it. */
interface PreviewBase {
  recipientCount: number
  totalAmount: Xof
  fees: Xof
  availableNow: Xof
  /** Below 0 by what is short. */
  availableAfter: Xof
  approvalRequired: boolean
  operators: readonly OperatorShare[]
  duplicates: readonly Duplicate[]
}

/** What a batch would come to. */
export interface BatchPreview extends PreviewBase {
  /** Numbers that their operator has no account of. */
  unknownNumbers: readonly string[]
  /** How many numbers were asked about and answered. */
  numbersChecked: number
  /** Its operators that nobody can ask about numbers. */
  operatorsWithoutLookup: readonly Provider[]
  /** Its operators that would be sent nothing now. */
  operatorsDown: readonly Provider[]
}

/** What one operator would pay. */
export interface OperatorShare {
  paymentMethod: Provider
  recipientCount: number
  totalAmount: Xof
  /** Its numbers, each once, in the order in which they came: the first hundred. */
  accounts: readonly string[]
}

/**
 * Reads what a draft comes to, in a transaction that may have just made it.
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

/** Adds what the operators say. After the transaction: they are asked over the network. */
export async function completePreview(ctx: Context, base: PreviewBase | null): Promise<BatchPreview> {
  invariant(base, 'what was rehearsed is there')
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

/** Asks an operator about numbers, a few at once, for as long as somebody waits. */
async function lookUp(
  ctx: Context,
  ask: NonNullable<OperatorDriver['lookupParty']>,
  accounts: readonly string[],
): Promise<Lookups> {
  const found: Lookups = { unknown: [], checked: 0 }
  const over = AbortSignal.any([ctx.ending, AbortSignal.timeout(dryRunLookupMs)])
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
  // Begun in time, a question has its usual time: that somebody is impatient is no fault of the operator's.
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
