import { z } from 'zod'
import { DomainError } from '../../shared/errors.ts'
import { invalidInput } from '../../shared/input.ts'
import type { Xof } from '../../shared/money.ts'
import { type Provider, providers } from '../../shared/providers.ts'
import { isWithin, networkEntry } from '../../shared/ip-whitelist.ts'

/**
 * The highest limit that a key can have, and the most addresses. Choice: a token that carries them still fits
 * into a header.
 */
const keyLimitMaxXof = 1_000_000_000_000
const keyLimitAddressesMax = 20

/**
 * The limits of an API key or a token, named `limits` in the API; null means no limit. The limits of a key
 * never change, not even when the key is regenerated. A token contains, signed, the limits of its key or
 * narrower limits.
 */
export interface KeyLimitSet {
  /** The largest amount of one deposit, refund, payout or recipient of a batch, in whole XOF. */
  maxPerPayment: Xof | null
  /**
   * The maximum sum of all deposits, refunds, payouts and batches in one UTC day of the service's clock, in
   * whole XOF. Choice: each payment counts when it is requested, a scheduled payout on the day of its
   * request. A payment that fails or is cancelled later still counts, so that a thief with the key cannot
   * repeat failing payments without end.
   */
  maxPerDay: Xof | null
  /** The operators through which the key may collect, pay and refund, also in a batch. */
  paymentMethods: readonly Provider[] | null
  /** The addresses and CIDR ranges from which the key may be used; the account's whitelist applies too. */
  addresses: readonly string[] | null
}

const whole = `must be a whole number of XOF from 1 to ${keyLimitMaxXof}`
const amount = z
  .union([z.bigint(), z.int().transform(BigInt)], whole)
  .refine((value) => value >= 1 && value <= keyLimitMaxXof, whole)

/**
 * The input `limits` of a caller. A field that is left out becomes null; the result is null if all fields
 * are.
 */
export const keyLimitsInput = z
  .object(
    {
      maxPerPayment: amount.nullish(),
      maxPerDay: amount.nullish(),
      paymentMethods: listOf(z.enum(providers), `must be a list of one or more of ${providers.join(', ')}`),
      addresses: listOf(networkEntry, 'must be a list of one or more addresses and CIDR ranges').refine(
        (entries) => (entries?.length ?? 0) <= keyLimitAddressesMax,
        `must have at most ${keyLimitAddressesMax} entries`,
      ),
    },
    'must be an object',
  )
  .transform(({ maxPerPayment = null, maxPerDay = null, paymentMethods = null, addresses = null }) =>
    orNone({ maxPerPayment, maxPerDay, paymentMethods, addresses }),
  )

function listOf<T extends z.ZodType>(entry: T, words: string) {
  const list = z.array(entry, words).min(1, words)
  return list.transform((entries) => [...new Set(entries)]).nullish()
}

/** Returns null for limits that are all null. */
export function orNone({
  maxPerPayment,
  maxPerDay,
  paymentMethods,
  addresses,
}: KeyLimitSet): KeyLimitSet | null {
  const keyLimits = { maxPerPayment, maxPerDay, paymentMethods, addresses }
  return Object.values(keyLimits).some((cap) => cap !== null) ? keyLimits : null
}

/**
 * Computes the limits of a token from the limits of its key and the narrower limits that the caller asks for.
 * @throws DomainError INVALID_INPUT that names each field of `limits` that is wider than the limit of the key
 */
export function narrow(key: KeyLimitSet, options: KeyLimitSet | null): KeyLimitSet | null {
  if (!options) return orNone(key)
  const isOver = (asked: Xof | null, most: Xof | null) => asked !== null && most !== null && asked > most
  const over = (most: Xof | null) => `must be at most ${most}, which is the limit of the API key`
  const wider: Record<keyof KeyLimitSet, string | false> = {
    maxPerPayment: isOver(options.maxPerPayment, key.maxPerPayment) && over(key.maxPerPayment),
    maxPerDay: isOver(options.maxPerDay, key.maxPerDay) && over(key.maxPerDay),
    paymentMethods:
      options.paymentMethods?.every((method) => key.paymentMethods?.includes(method) ?? true) === false &&
      `must be one or more of ${key.paymentMethods?.join(', ')}: the API key allows no other`,
    addresses:
      options.addresses?.every((entry) => !key.addresses || isWithin(entry, key.addresses)) === false &&
      'must be addresses that the API key allows',
  }
  const problems = Object.entries(wider).flatMap(([name, message]) =>
    message === false ? [] : [{ field: `limits.${name}`, message }],
  )
  if (problems.length > 0) throw invalidInput(problems)
  return orNone({
    maxPerPayment: options.maxPerPayment ?? key.maxPerPayment,
    maxPerDay: options.maxPerDay ?? key.maxPerDay,
    paymentMethods: options.paymentMethods ?? key.paymentMethods,
    addresses: options.addresses ?? key.addresses,
  })
}

/**
 * Checks a collection, deposit, refund or payout against the limits of its caller, except the daily one,
 * which is checked where the money is set aside (`DailyLimit`). Call it after the fields were checked,
 * because it uses them, and before the reference is looked up.
 * @param payment.amount the amount of money out; null where money comes in
 * @throws DomainError LIMIT_EXCEEDED
 */
export function checkKeyLimits(
  { keyLimits }: { keyLimits: KeyLimitSet | null },
  { amount: asked, provider }: { amount: Xof | null; provider: Provider },
): void {
  if (keyLimits?.paymentMethods?.includes(provider) === false)
    throw beyondKeyLimit(keyLimits, 'paymentMethods')
  if (asked !== null && keyLimits?.maxPerPayment != null && asked > keyLimits.maxPerPayment) {
    throw beyondKeyLimit(keyLimits, 'maxPerPayment')
  }
}

/** Returns the refusal of a payment that is beyond a limit of its caller. */
export function beyondKeyLimit(
  keyLimits: Pick<KeyLimitSet, 'maxPerPayment' | 'paymentMethods'> | null,
  limit: 'maxPerPayment' | 'paymentMethods',
): DomainError {
  return beyond(
    limit,
    limit === 'paymentMethods'
      ? `is limited to payments by ${keyLimits?.paymentMethods?.join(', ')}`
      : `is limited to ${keyLimits?.maxPerPayment} XOF per payment`,
  )
}

/** Returns the refusal for any limit of a key. */
export function beyond(limit: keyof KeyLimitSet, words: string): DomainError {
  return new DomainError('LIMIT_EXCEEDED', `This API key or token ${words}. Nothing was recorded.`, { limit })
}
