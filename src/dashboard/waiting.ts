import { formatPhone, formatXof, isolate } from './format.ts'
import type { AppLanguage } from './language.ts'
import type { Words } from './words/fr.ts'

/** The facts by which a list names a request that waits for an approval. */
type Request =
  | { __typename: 'Payout'; amount: number; beneficiaryName: string | null; destinationPhone: string }
  | { __typename: 'Batch'; totalAmount: number; title: string | null; recipientCount: number }
  | {
      __typename: 'DepositApproval'
      transaction: { amount: number; customerPhone: string; refundOf: object | null }
    }
  | { __typename: 'SettingsChange' }

/** Returns the name of a request: its kind and its payee. */
export function nameOf(request: Request, { home, approvals }: Words): string {
  switch (request.__typename) {
    case 'Payout': {
      const { beneficiaryName, destinationPhone } = request
      return home.payoutTo(beneficiaryName ? isolate(beneficiaryName) : formatPhone(destinationPhone))
    }
    case 'Batch':
      return home.batchOf(isolate(request.title ?? ''), request.recipientCount)
    case 'DepositApproval': {
      const phone = formatPhone(request.transaction.customerPhone)
      return request.transaction.refundOf ? approvals.refundTo(phone) : home.depositTo(phone)
    }
    case 'SettingsChange':
      return home.settingsChange
  }
}

/** Writes the amount of a request; '' where it moves no money. */
export function amountOf(request: Request, language: AppLanguage): string {
  switch (request.__typename) {
    case 'Payout':
      return formatXof(request.amount, language)
    case 'Batch':
      return formatXof(request.totalAmount, language)
    case 'DepositApproval':
      return formatXof(request.transaction.amount, language)
    case 'SettingsChange':
      return ''
  }
}

/** The person or the program that requested something. */
interface Author {
  kind: string
  name: string
  member: { name: string } | null
}

/** Names the person, or the program and the person who received its key. */
export function authorOf({ kind, name, member }: Author, { approvals }: Words): string {
  if (kind !== 'API_KEY') return isolate(name)
  return approvals.byKey(isolate(name)) + (member ? ` (${isolate(member.name)})` : '')
}
