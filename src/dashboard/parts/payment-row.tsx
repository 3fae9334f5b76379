import { Link } from 'wouter-preact'
import { formatMoment, formatPhone, formatXof } from '../format.ts'
import { useLanguage, useWords } from '../language.ts'
import type { PaymentRowFragment } from '../operations.ts'
import { operatorLabel } from '../operator-label.ts'

interface PaymentRowProps {
  payment: PaymentRowFragment
  timeZone: string
  /** The mark that the browser keeps with the visit of the payment's page. */
  visit?: object
}

/** One payment of a list: who, when, how much, what became of it, and why it failed. */
export function PaymentRow({ payment, timeZone, visit }: PaymentRowProps) {
  const language = useLanguage()
  const words = useWords()
  const { status, transactionType, customerPhone, failure } = payment
  const isOut = transactionType === 'DEPOSIT'
  const amount = payment.settledAmount ?? payment.amount
  const reason = failure && (language === 'fr' ? failure.messageFr : failure.messageEn)
  return (
    <li>
      <div>
        <Link href={`/payments/${payment.databaseId}`} state={visit} className="number wide-link">
          {formatPhone(customerPhone)}
        </Link>
        <p className="soft line">
          {formatMoment(payment.createdAt, language, timeZone)} · {operatorLabel(payment.paymentMethod)}
        </p>
        <p className="soft reference">{payment.refundOf ? words.payment.refund : payment.reference}</p>
        {reason && <p className="problem">{reason}</p>}
      </div>
      <div className="end">
        <strong className="number">
          {isOut ? '− ' : ''}
          {formatXof(amount, language)}
        </strong>
        <p>
          <StateBadge status={status} />
        </p>
      </div>
    </li>
  )
}

/** The state of a payment in one word, with its colour. */
export function StateBadge({ status }: Pick<PaymentRowFragment, 'status'>) {
  const words = useWords()
  return <span className={`state ${tones[status] ?? ''}`}>{words.statuses[status]}</span>
}

const tones: Readonly<Partial<Record<PaymentRowFragment['status'], string>>> = {
  SUCCESS: 'good',
  FAILED: 'bad',
  REVERSED: 'bad',
  EXPIRED: 'over',
  CANCELLED: 'over',
}
