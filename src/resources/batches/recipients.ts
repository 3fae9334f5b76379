import type { ArgumentsOf } from '../../database/sql-function.ts'
import { z } from 'zod'
import { mine } from '../../identity/callers/actor.ts'
import type { Context } from '../../context.ts'
import type { FieldProblem } from '../../shared/errors.ts'
import { amount, currencyField, invalidInput, mustBeOneOf, phone, text } from '../../shared/input.ts'
import { limits } from '../../shared/limits.ts'
import type { Xof } from '../../shared/money.ts'
import { suggestProvider } from '../../config/number-ranges.ts'
import { type Provider, providers } from '../../shared/providers.ts'
import { yieldIfBusy } from '../../shared/yield-if-busy.ts'

/** The maximum number of problems that an error of one call lists. */
const batchProblemsShown = 100

/** The input schema of the operator of a recipient. */
export const recipientMethod = z.enum(providers, {
  error: ({ input }) =>
    input === 'BankTransfer' ? 'BankTransfer is not yet supported' : mustBeOneOf(providers, input),
})

export const recipientInput = z
  .object(
    {
      name: text({ min: 1, max: limits.recipientNameLengthMax }),
      account: phone,
      amount: amount({ min: limits.disburseAmountMinXof, max: limits.payoutAmountMaxXof }),
      currency: currencyField.nullish(),
      paymentMethod: recipientMethod.nullish(),
    },
    'must be an object',
  )
  .transform(({ currency: _xof, ...recipient }) => recipient)
export type RecipientInput = z.input<typeof recipientInput>
type Row = z.output<typeof recipientInput>

/** A recipient with a known operator. */
export interface Recipient {
  name: string
  /** E.164 */
  account: string
  amount: Xof
  paymentMethod: Provider
}

/**
 * Parses the recipients of a call, all or none. It checks only their fields, not their operators.
 * @param inWords converts a row to the field names of the schema
 * @throws DomainError INVALID_INPUT that names the first hundred problems by path: `recipients[3].amount`
 * @see docs/design/rules.md#batches
 */
export async function readRows(
  raw: unknown,
  inWords: (row: unknown) => unknown = (row) => row,
): Promise<Row[]> {
  if (raw == null) return []
  if (!Array.isArray(raw)) throw refuse([{ field: 'recipients', message: 'must be a list' }])
  if (raw.length > limits.batchRecipientsMax) throw tooMany(limits.batchRecipientsMax)
  const problems: FieldProblem[] = []
  const read: Row[] = []
  for (const [index, each] of raw.entries()) {
    const result = recipientInput.safeParse(inWords(each))
    if (result.success) read.push(result.data)
    else {
      const found = result.error.issues.map(({ path, message }) => ({ field: fieldOf(index, path), message }))
      problems.push(...found)
    }
    // A call may have ten thousand rows: let other requests run in between.
    const turn = yieldIfBusy()
    if (turn) await turn
  }
  if (problems.length > 0) throw refuse(problems)
  return read
}

/**
 * Finds the operator of each recipient: the recipient's own, else the operator of the batch, else the
 * operator of the merchant's saved beneficiary with this account, else the one that the number suggests.
 * @param usual the operator of the batch, for recipients that name none
 * @throws DomainError INVALID_INPUT that names the first hundred recipients without a connected operator
 * @see docs/design/rules.md#batches
 */
export async function findOperators(
  ctx: Context,
  read: readonly Row[],
  usual: Provider | null,
): Promise<Recipient[]> {
  const methodOf = await findMethods(ctx, read, usual)
  const problems: FieldProblem[] = []
  const recipients = read.flatMap((each, index): Recipient[] => {
    const paymentMethod = methodOf(each)
    if (paymentMethod !== null && ctx.operators.find(paymentMethod)) return [{ ...each, paymentMethod }]
    const message =
      paymentMethod === null
        ? 'is required: the number suggests no operator'
        : `is ${paymentMethod}, an operator that this service is not set up for; choose another`
    problems.push({ field: fieldOf(index, ['paymentMethod']), message })
    return []
  })
  if (problems.length > 0) throw refuse(problems)
  return recipients
}

/** Returns the error for a call with more recipients than the batch has room for. */
export function tooMany(left: number) {
  const most = limits.batchRecipientsMax
  const message = `has too many entries: a batch has ${most} at most, and this one has room for ${left}`
  return refuse([{ field: 'recipients', message }])
}

function refuse(problems: FieldProblem[]) {
  return invalidInput(problems.slice(0, batchProblemsShown))
}

function fieldOf(index: number, path: readonly PropertyKey[]): string {
  return [`recipients[${index}]`, ...path.map(String)].join('.')
}

type Unsettled = Pick<Row, 'account' | 'paymentMethod'>

async function findMethods(
  ctx: Context,
  recipients: readonly Unsettled[],
  usual: Provider | null,
): Promise<(recipient: Unsettled) => Provider | null> {
  const open = recipients.filter(({ paymentMethod }) => paymentMethod == null && usual === null)
  const saved = new Map<string, Provider>()
  if (open.length > 0) {
    const { rows } = await ctx.database.merchantPool.query<{ account: string; paymentMethod: Provider }>({
      name: 'methods_of_beneficiaries',
      text: `SELECT DISTINCT ON (account) account, payment_method AS "paymentMethod" FROM beneficiary
        WHERE merchant_id = $1 AND account = ANY ($2) AND payment_method <> 'BankTransfer' AND is_active
        ORDER BY account, id DESC`,
      values: [mine(ctx).merchantId, [...new Set(open.map(({ account }) => account))]],
    })
    for (const { account, paymentMethod } of rows) saved.set(account, paymentMethod)
  }
  const { numberRanges } = ctx.config
  return ({ account, paymentMethod }) =>
    paymentMethod ?? usual ?? saved.get(account) ?? suggestProvider(numberRanges, account)
}

/** The types of the arguments by which SQL functions receive recipients: one array for each column. */
export const recipientTypes = {
  names: 'text[]',
  accounts: 'text[]',
  amounts: 'bigint[]',
  methods: 'provider[]',
} as const

/** Converts recipients to the arguments of `recipientTypes`. */
export function recipientArguments(recipients: readonly Recipient[]): ArgumentsOf<typeof recipientTypes> {
  return {
    names: recipients.map(({ name }) => name),
    accounts: recipients.map(({ account }) => account),
    amounts: recipients.map(({ amount: asked }) => asked),
    methods: recipients.map(({ paymentMethod }) => paymentMethod),
  }
}
