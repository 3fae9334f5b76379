import { z } from 'zod'
import { exactText, oneOf } from '../../shared/input.ts'
import { limits } from '../../shared/limits.ts'
import { parsePhone, withoutMarks } from '../../shared/phone.ts'
import { type PayoutMethod, payoutMethods } from '../../shared/providers.ts'

/** The account to which a beneficiary is paid. */
interface Destination {
  account: string
  paymentMethod: PayoutMethod
}

export const destinationFields = {
  account: exactText({ min: 1, max: limits.bankAccountLengthMax }, withoutMarks),
  paymentMethod: oneOf(payoutMethods),
}

/**
 * The arguments of `refine` that check if an account fits its payment method (see
 * docs/design/rules.md#beneficiaries). The check runs if these two fields are valid, even if others are not:
 * so all problems are reported together.
 */
export const fits = [
  (destination: Destination) => problemOf(destination) === null,
  {
    path: ['account'] as PropertyKey[],
    error: ({ input }: { input?: unknown }) => problemOf(input as Destination),
    when: ({ value, issues }: { value: unknown; issues: readonly { path?: PropertyKey[] | undefined }[] }) =>
      typeof value === 'object' &&
      value !== null &&
      !issues.some(
        ({ path }) => path === undefined || path[0] === undefined || String(path[0]) in destinationFields,
      ),
  },
] as const

/** The input schema of an account and its method, which returns the stored form: mobile numbers in E.164. */
export const destinationInput = z
  .object(destinationFields)
  .refine(...fits)
  .transform(asStored)

/** Returns the destination in its stored form: a mobile number in E.164, a bank account as it was typed. */
export function asStored<T extends Destination>(destination: T): T {
  if (destination.paymentMethod === 'BankTransfer') return destination
  return { ...destination, account: parsePhone(destination.account) ?? destination.account }
}

function problemOf({ account, paymentMethod }: Destination): string | null {
  if (paymentMethod !== 'BankTransfer')
    return parsePhone(account) === null ? 'must be a mobile number in Mali' : null
  const { bankAccountLengthMin: min, bankAccountLengthMax: max } = limits
  return Array.from(account.trim()).length < min ? `must have ${min} to ${max} characters` : null
}
