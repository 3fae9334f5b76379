import { limits } from '../../shared/limits.ts'
import { parsePhone } from '../../shared/phone.ts'
import { type NumberRanges, suggestProvider } from '../../config/number-ranges.ts'
import { type Provider, providers } from '../../shared/providers.ts'
import type { PublicLink } from '../../resources/payment-links/find.ts'
import { meansUtf8 } from '../request.ts'
import type { PageLanguage } from './layout.ts'
import { words } from './payment-link-words.ts'

/** The fields of a form as the payer typed them. */
export interface Typed {
  amount: string
  phone: string
  /** An operator; empty where the number decides. */
  operator: string
  /** The token of the form: the same each time that the form is sent. */
  token: string
}

/** The messages for problems, at a field or above the form. */
export type Problems = Partial<Record<'amount' | 'phone' | 'operator' | 'all', string>>

export interface PaymentInput {
  amount: bigint
  customerPhone: string
  paymentMethod: Provider
}

/**
 * Reads the form that a browser sent. A field that is too long is cut to `fieldLengthMax` characters. A form
 * that is not UTF-8, or has a field twice, counts as empty, so that the payer writes it again.
 */
export function readForm(body: Buffer): Typed {
  const form = new URLSearchParams(body.toString())
  const isClear = meansUtf8(body) && fields.every((name) => form.getAll(name).length < 2)
  const sent = (name: keyof Typed) => (isClear ? (form.get(name) ?? '').slice(0, fieldLengthMax) : '')
  const token = sent('token')
  return {
    amount: sent('amount'),
    phone: sent('phone'),
    operator: sent('operator'),
    token: /^[0-9a-f]{32}$/.test(token) ? token : '',
  }
}

const fields: readonly (keyof Typed)[] = ['amount', 'phone', 'operator', 'token']
const fieldLengthMax = 64

/**
 * Checks a form. Returns the amount, the payer's number and the operator; or the problems, in the payer's
 * language.
 */
export function checkForm(
  typed: Typed,
  link: PublicLink,
  ranges: NumberRanges,
  language: PageLanguage,
): { payment: PaymentInput } | { problems: Problems } {
  const say = words[language].problems
  const problems: Problems = {}
  // The form sends a fixed amount too, so that a payer who was shown another amount gets a message.
  const amount = readAmount(typed.amount)
  if (amount === null) problems.amount = say.amount
  else if (amount < limits.collectAmountMinXof) problems.amount = say.amountLeast
  else if (amount > limits.amountMaxXof) problems.amount = say.amountMost
  if (link.amount !== null && problems.amount !== undefined) {
    problems.all = say.changed
    delete problems.amount
  }
  const phone = parsePhone(typed.phone)
  if (phone === null) problems.phone = say.phone
  const named = providers.find((provider) => provider === typed.operator)
  const suggested = phone === null ? null : suggestProvider(ranges, phone)
  const provider = typed.operator === '' ? suggested : (named ?? null)
  if (provider === null && (phone !== null || typed.operator !== '')) problems.operator = say.operator
  if (amount === null || phone === null || provider === null || Object.keys(problems).length > 0)
    return { problems }
  return { payment: { amount, customerPhone: phone, paymentMethod: provider } }
}

/**
 * Reads an amount as people write it: `5000`, `5 000`, `5.000 F CFA`. Null where it is no whole number of
 * francs.
 */
function readAmount(text: string): bigint | null {
  const bare = text.trim().replace(/\s*(f\s*cfa|f|xof|cfa)\.?$/i, '')
  if (!/^\d{1,12}$|^\d{1,3}([\s.,']\d{3}){1,3}$/.test(bare)) return null
  return BigInt(bare.replace(/\D/g, ''))
}
