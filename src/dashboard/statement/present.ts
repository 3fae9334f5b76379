import type { AppLanguage } from '../language.ts'
import type { StatementRowFragment } from '../operations.ts'
import type { StatementWords } from './fr.ts'

// One line of a statement in the words of an accountant.

/** Returns what a line added to the whole balance; negative where it took from it. */
export function changeOf({ availableChange, reservedChange }: StatementRowFragment): number {
  return availableChange + reservedChange
}

/**
 * Whether a line is one for an accountant. Money that is only set aside, or becomes available again, changes
 * neither the balance nor the amount owed.
 */
export function isShown(line: StatementRowFragment): boolean {
  return changeOf(line) !== 0 || line.receivableChange !== 0
}

/** Writes what happened. */
export function nameOf(line: StatementRowFragment, { kinds }: StatementWords): string {
  const { step } = line.entry
  switch (step) {
    case 'CREDIT':
      return kinds.received
    case 'FUND':
      return kinds.testMoney
    case 'POST':
      return kindOf(line, kinds)
    case 'REVERSE':
      return changeOf(line) < 0 ? kinds.taken : kinds.givenBack(kindOf(line, kinds))
    case 'SHORTFALL':
      return kinds.owed
    case 'RECOVER':
      return kinds.recovered
    case 'EXCESS':
      return kinds.tooMuch
    case 'EXCESS_CREDIT':
      return kinds.tooMuchKept
    case 'EXCESS_RETURN':
      return kinds.tooMuchReturned
    case 'WITHHOLD':
      return kinds.unconfirmed(kindOf(line, kinds))
    case 'WITHHELD_CREDIT':
      return kinds.unconfirmedBack(kindOf(line, kinds))
    case 'WITHHELD_POST':
      return kinds.unconfirmedPaid(kindOf(line, kinds))
    case 'RESERVE':
      return kinds.setAside
    case 'RELEASE':
    case 'VOID':
      return kinds.freed
  }
}

/** Names the kind of a payment out. */
function kindOf(line: StatementRowFragment, kinds: StatementWords['kinds']): string {
  const { subject, transactionId, payoutId, recipientId, batchId } = line
  if (subject?.__typename === 'Transaction') return subject.refundOf ? kinds.refund : kinds.deposit
  // The payment itself is hidden from members without the right to see it.
  if (transactionId !== null) return kinds.depositOrRefund
  if (payoutId !== null) return kinds.payout
  return recipientId !== null || batchId !== null ? kinds.payroll : kinds.payment
}

/**
 * Returns the reference that people know: a refund without one of their own has the one of its payment, and
 * not the one that the service made up for it.
 */
export function referenceOf({ reference, subject }: StatementRowFragment): string | null {
  const payment = subject?.__typename === 'Transaction' ? subject.refundOf : null
  return payment && reference?.startsWith('rf_') ? payment.reference : reference
}

/** Returns the path of the payment, payout or payroll of a line; null where it has no page. */
export function pathOf({ transactionId, payoutId, batchId, subject }: StatementRowFragment): string | null {
  if (transactionId !== null) return `/payments/${transactionId}`
  if (payoutId !== null) return `/payouts/${payoutId}`
  const batch = subject?.__typename === 'BatchRecipient' ? subject.batch.databaseId : batchId
  return batch === null ? null : `/payroll/${batch}`
}

const signed = {
  fr: signedForm('fr'),
  en: signedForm('en'),
}

function signedForm(language: AppLanguage): Intl.NumberFormat {
  const form = { style: 'currency', currency: 'XOF', maximumFractionDigits: 0, signDisplay: 'exceptZero' }
  return new Intl.NumberFormat(language, form as Intl.NumberFormatOptions)
}

/** Writes a change in whole XOF with its sign: `+5 000 F CFA`. */
export function formatChange(amount: number, language: AppLanguage): string {
  // The minus sign is as wide as the plus sign.
  return signed[language].format(amount).replace('-', '\u2212')
}

/** Writes the day and the time of a line: `30 nov., 14:05`. */
export function formatLineTime(moment: string, language: AppLanguage, timeZone: string): string {
  const day = { day: 'numeric', month: 'short' } as const
  const hour = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const
  return new Intl.DateTimeFormat(language, { ...day, ...hour, timeZone }).format(new Date(moment))
}

/** Writes the day and the time when a statement was made: `30 novembre 2026 à 14:05`. */
export function formatMadeAt(moment: string, language: AppLanguage, timeZone: string): string {
  const form = { dateStyle: 'long', timeStyle: 'short', hourCycle: 'h23', timeZone } as const
  return new Intl.DateTimeFormat(language, form).format(new Date(moment))
}
