import { formatMoment, formatPhone, formatXof } from '../format.ts'
import { useLanguage, useWords } from '../language.ts'
import type { PaymentRowFragment } from '../operations.ts'

/** One payment of a list: who, when, how much, what became of it, and why it failed. */
export function PaymentRow({ payment, timeZone }: { payment: PaymentRowFragment; timeZone: string }) {
  const words = useWords()
  const language = useLanguage()
  const { status, transactionType, customerPhone, failure } = payment
  const isOut = transactionType === 'DEPOSIT'
  const amount = payment.settledAmount ?? payment.amount
  const reason = failure && (language === 'fr' ? failure.messageFr : failure.messageEn)
  return (
    <li>
      <div>
        <strong className="number">{formatPhone(customerPhone)}</strong>
        <p className="soft line">
          {formatMoment(payment.createdAt, language, timeZone)} · {payment.paymentMethod}
        </p>
        <p className="soft reference">{payment.reference}</p>
        {reason && <p className="problem">{reason}</p>}
      </div>
      <div className="end">
        <strong className="number">
          {isOut ? '− ' : ''}
          {formatXof(amount, language)}
        </strong>
        <p>
          <span className={`state ${tones[status] ?? ''}`}>{words.statuses[status]}</span>
        </p>
      </div>
    </li>
  )
}

const tones: Readonly<Partial<Record<PaymentRowFragment['status'], string>>> = {
  SUCCESS: 'good',
  FAILED: 'bad',
  REVERSED: 'bad',
  EXPIRED: 'over',
  CANCELLED: 'over',
}
