import { randomBytes } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { actorOf, type AccountCaller, callerOf, mine } from '../../identity/callers/actor.ts'
import { type Recording, recordingOf } from '../../audit/audit-log.ts'
import { checkKeyLimits } from '../../identity/keys/key-limits.ts'
import { whyTurnedAway } from '../../identity/callers/credentials.ts'
import type { Context } from '../../context.ts'
import { sqlFunctionOfMany, sqlType } from '../../database/sql-function.ts'
import { smallIdOf } from '../../shared/ids.ts'
import { insufficientBalance } from '../../ledger/balance.ts'
import { DomainError, type FieldProblem } from '../../shared/errors.ts'
import {
  amount,
  invalidInput,
  mustBeOneOf,
  phone,
  provider,
  readInput,
  reference,
  xofByDefault,
} from '../../shared/input.ts'
import { time } from '../../shared/time.ts'
import { limits } from '../../shared/limits.ts'
import { currency, type Xof } from '../../shared/money.ts'
import { payoutMethods, type Provider, providers } from '../../shared/providers.ts'
import { identityOf } from '../../requests/identity.ts'
import { otherLostPayment } from '../../requests/lost-payment.ts'
import { paymentOutTypes, recordsPaymentsOut } from '../disbursements/record.ts'
import type { PayoutStatus } from './states.ts'

/** The longest time between now and the scheduled time of a payout (see docs/design/rules.md#payouts). */
export const payoutScheduleMaxMs = 366 * 24 * 3_600_000

const method = z
  .enum(providers, {
    error: ({ input }) =>
      input === 'BankTransfer' ? 'BankTransfer is not yet supported' : mustBeOneOf(providers, input),
  })
  // The GraphQL enum contains BankTransfer: a client that sends it gets the message above.
  .meta({ graphql: payoutMethods })

/**
 * Returns the arguments of `refine` for a field of the destination. The field is required unless the payout
 * has `destination`, or names a beneficiary, which has both fields. The check also runs if other fields are
 * wrong, so that all problems are reported together.
 */
const given = (field: 'paymentMethod' | 'destinationPhone') =>
  [
    (payout: Record<string, unknown>) =>
      (payout['destination'] ?? payout['beneficiaryId'] ?? payout[field]) != null,
    {
      path: [field] as PropertyKey[],
      error: 'is required',
      when: ({
        value,
        issues,
      }: {
        value: unknown
        issues: readonly { path?: PropertyKey[] | undefined }[]
      }) =>
        typeof value === 'object' &&
        value !== null &&
        !issues.some(({ path }) => [field, 'beneficiaryId'].includes(String(path?.[0]))),
    },
  ] as const

const payoutFields = {
  amount: amount({ min: limits.disburseAmountMinXof, max: limits.payoutAmountMaxXof }),
  paymentMethod: method.nullish(),
  destinationPhone: phone.nullish(),
  destinationAccount: z
    .custom<null>((value) => value == null, 'is not yet supported: leave it out')
    .meta({ graphql: 'String' })
    .optional(),
  beneficiaryId: smallIdOf('Beneficiary').nullish(),
  reference: reference.nullish(),
  scheduledAt: time.nullish(),
  currency: xofByDefault,
}

/** The input of a new payout in REST (see docs/design/rules.md#payouts). */
export const flatPayoutInput = z
  .object(payoutFields)
  .refine(...given('paymentMethod'))
  .refine(...given('destinationPhone'))

/** The mobile-money account that a payout pays. */
export const mobileAccountInput = z.object({ phone, paymentMethod: provider })

/** The destination of a payout: an account, or the account of a beneficiary. */
export const payoutDestinationInput = z.object({
  mobile: mobileAccountInput.nullish(),
  beneficiaryId: smallIdOf('Beneficiary').nullish(),
})

/** The input of a new payout: that of REST, or `destination` in place of its fields about the destination. */
export const createPayoutInput = z
  .object({ ...payoutFields, destination: payoutDestinationInput.nullish() })
  .refine(...given('paymentMethod'))
  .refine(...given('destinationPhone'))
  .refine(
    ({ destination, paymentMethod, destinationPhone, beneficiaryId }) =>
      destination == null || (paymentMethod ?? destinationPhone ?? beneficiaryId) == null,
    { path: ['destination'], error: 'cannot be combined with another field about the destination' },
  )
  .transform(({ destination, paymentMethod, destinationPhone, beneficiaryId, ...others }) => ({
    paymentMethod: destination ? destination.mobile?.paymentMethod : paymentMethod,
    destinationPhone: destination ? destination.mobile?.phone : destinationPhone,
    beneficiaryId: destination ? destination.beneficiaryId : beneficiaryId,
    ...others,
  }))
export type CreatePayoutInput = z.input<typeof createPayoutInput>

/**
 * Withdraws part of the merchant's balance to a mobile-money number, at once or on a later day. A payout that
 * goes at once reserves its money here; a scheduled payout reserves its money when it is due.
 * @param raw.amount whole XOF, 1,000 to 100,000,000
 * @param raw.destination a number with its method, or the beneficiary to pay; the payout keeps the present
 *   values of both. The fields beside it are the older form
 * @returns the payout; `isNew` is false where the same request had created it before
 * @throws DomainError INVALID_INPUT, NOT_FOUND (the beneficiary), LIMIT_EXCEEDED,
 *   DUPLICATE_PAYOUT (with the existing one), PAYMENTS_OUT_HALTED, INSUFFICIENT_BALANCE, OVERLOADED; nothing
 *   was recorded
 * @see docs/design/rules.md#payouts
 */
export async function createPayout(
  ctx: Context,
  raw: CreatePayoutInput,
): Promise<{ id: bigint; isNew: boolean }> {
  const caller = callerOf(ctx)
  const input = readInput(createPayoutInput, raw)
  const named = input.reference ?? `po_${ctx.idempotentOperation?.id ?? randomBytes(16).toString('hex')}`
  // Look first for a payout that this request has created: it stays valid even if its beneficiary or its day
  // would be refused now.
  const own = ctx.idempotentOperation?.isResumed && isOwn(ctx, await findExisting(ctx, named), input)
  if (own) return { id: own.id, isNew: false }
  checkDay(ctx, input.scheduledAt)
  const names = raw.destination == null ? flatNames : nestedNames
  const destination = await findDestination(ctx, input, names)
  if (!ctx.operators.find(destination.provider)) {
    throw invalidInput([
      {
        field: destination.beneficiaryId === null ? names.paymentMethod : names.beneficiaryMethod,
        message: 'names an operator that this service is not set up for; choose another',
      },
    ])
  }
  const actor = actorOf(ctx)
  checkKeyLimits(actor, { ...destination, amount: input.amount })
  const identity = await identityOf(ctx, 'payout', input.reference)
  const made = await record(ctx, {
    ...caller,
    ...destination,
    recording: recordingOf(ctx, 'createPayout'),
    amount: input.amount,
    reference: named,
    identity,
    scheduledAt: input.scheduledAt ?? null,
    request: requestData(input),
  })
  switch (made.outcome) {
    case 'made':
      if (!input.scheduledAt) ctx.notifyJob('payouts.due')
      return { id: made.payoutId, isNew: true }
    case 'unauthenticated':
      throw await whyTurnedAway(ctx)
    case 'duplicate':
      // The payout that took the reference first is committed by now, so a second statement can read it.
      return repeated(ctx, await findExisting(ctx, named), input)
    case 'differs':
      throw await otherLostPayment(ctx, 'DUPLICATE_PAYOUT', identity)
    case 'halted':
      throw new DomainError('PAYMENTS_OUT_HALTED')
    case 'short':
      throw await insufficientBalance(ctx.database.merchantPool, caller.merchantId)
  }
}

type Input = z.output<typeof createPayoutInput>

/** Checks the scheduled day by the clock of the service. @throws DomainError INVALID_INPUT */
function checkDay(ctx: Context, scheduledAt: Date | null | undefined): void {
  if (!scheduledAt) return
  const ahead = scheduledAt.getTime() - ctx.clock.now().getTime()
  const refuse = (message: string) => invalidInput([{ field: 'scheduledAt', message }])
  if (ahead <= 0) throw refuse('must be in the future')
  if (ahead > payoutScheduleMaxMs) throw refuse('must be at most 366 days ahead')
}

interface Destination {
  provider: Provider
  phone: string
  beneficiaryId: number | null
  beneficiaryName: string | null
}

/** The fields of the destination in both forms of the input, as refusals name them. */
const flatNames = {
  beneficiaryId: 'beneficiaryId',
  paymentMethod: 'paymentMethod',
  beneficiaryMethod: 'paymentMethod',
}
const nestedNames = {
  beneficiaryId: 'destination.beneficiaryId',
  paymentMethod: 'destination.mobile.paymentMethod',
  beneficiaryMethod: 'destination.beneficiaryId',
}
type FieldNames = typeof flatNames

/**
 * Reads the number and the operator from the input or from the beneficiary.
 * @throws DomainError NOT_FOUND, INVALID_INPUT
 */
async function findDestination(ctx: Context, input: Input, names: FieldNames): Promise<Destination> {
  const { paymentMethod, destinationPhone } = input
  if (input.beneficiaryId == null) {
    if (paymentMethod == null || destinationPhone == null) throw new DomainError('INVALID_INPUT')
    return { provider: paymentMethod, phone: destinationPhone, beneficiaryId: null, beneficiaryName: null }
  }
  const id = input.beneficiaryId
  const beneficiary = await ctx.database.prisma.beneficiary.findFirst({ where: { id, ...mine(ctx) } })
  if (!beneficiary) throw new DomainError('NOT_FOUND', 'There is no such beneficiary.')
  const { name, account, paymentMethod: stored, isActive } = beneficiary
  const problems: (FieldProblem | false)[] = [
    !isActive && { field: names.beneficiaryId, message: 'names a beneficiary that is not active' },
    stored === 'BankTransfer' && {
      field: names.beneficiaryId,
      message: 'names a beneficiary of BankTransfer, which is not yet supported',
    },
    paymentMethod != null &&
      paymentMethod !== stored && {
        field: 'paymentMethod',
        message: 'differs from that of the beneficiary: leave it out',
      },
    destinationPhone != null &&
      destinationPhone !== account && {
        field: 'destinationPhone',
        message: 'differs from that of the beneficiary: leave it out',
      },
  ]
  const found = problems.filter((problem) => problem !== false)
  if (found.length > 0 || stored === 'BankTransfer') throw invalidInput(found)
  return { provider: stored, phone: account, beneficiaryId: id, beneficiaryName: name }
}

/**
 * Returns the fields that the merchant sent, under their names in REST; fields that were left out are absent.
 */
function requestData(input: Input): Record<string, unknown> {
  const asked = {
    amount: Number(input.amount),
    currency,
    payment_method: input.paymentMethod,
    destination_phone: input.destinationPhone,
    beneficiary_id: input.beneficiaryId,
    reference: input.reference,
    scheduled_at: input.scheduledAt,
  }
  return Object.fromEntries(Object.entries(asked).filter(([, value]) => value != null))
}

interface Existing {
  id: bigint
  status: PayoutStatus
  request: unknown
  createdAt: Date
}

async function findExisting(ctx: Context, named: string): Promise<Existing | undefined> {
  const { rows } = await ctx.database.merchantPool.query<Existing>({
    name: 'existing_payout',
    text: `SELECT id, status, request_data AS request, created_at AS "createdAt"
      FROM payout WHERE reference = $1 AND merchant_id = $2`,
    values: [named, mine(ctx).merchantId],
  })
  return rows[0]
}

/**
 * Returns the payout if an earlier try of this same request, under the same `Idempotency-Key`, created it;
 * otherwise null.
 */
function isOwn(ctx: Context, existing: Existing | undefined, input: Input): Existing | null {
  if (!ctx.idempotentOperation?.isResumed || !existing || existing.createdAt < ctx.idempotentOperation.since)
    return null
  return isDeepStrictEqual(existing.request, JSON.parse(JSON.stringify(requestData(input)))) ? existing : null
}

/**
 * Answers a request whose reference is already taken.
 * @returns the payout, if this same request created it
 * @throws DomainError DUPLICATE_PAYOUT otherwise
 */
function repeated(ctx: Context, existing: Existing | undefined, input: Input): { id: bigint; isNew: false } {
  const own = isOwn(ctx, existing, input)
  if (own) return { id: own.id, isNew: false }
  throw new DomainError('DUPLICATE_PAYOUT', undefined, {
    ...(existing && { existingPayout: { id: existing.id, status: existing.status } }),
  })
}

interface Item extends AccountCaller, Destination {
  recording: Recording
  amount: Xof
  reference: string
  /** The identity under which the operator is asked: see `identityOf`. */
  identity: string
  scheduledAt: Date | null
  request: Record<string, unknown>
}

type Made =
  | { outcome: 'made'; payoutId: bigint }
  | { outcome: 'unauthenticated' | 'duplicate' | 'differs' | 'halted' | 'short' }

/** Creates all payouts that arrived together in one statement, which decides which of them are covered. */
export const createPayouts = sqlFunctionOfMany('create_payouts', {
  as: 'payout_item',
  each: {
    ...paymentOutTypes,
    scheduledAt: 'timestamptz?',
    beneficiaryId: 'int?',
    beneficiaryName: 'text?',
  },
  takes: { approvalMs: 'bigint', waits: 'boolean' },
  gives: { outcome: sqlType<Made['outcome']>('text'), payoutId: 'bigint?' },
})

const record = recordsPaymentsOut<Item, Made>(async (pool, items, waits) => {
  const rows = await createPayouts(pool, items, { approvalMs: limits.approvalLifetimeMs, waits })
  return rows as Made[]
})
