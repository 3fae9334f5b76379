import type { ComponentChildren } from 'preact'
import { useRef } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { formatInstant, formatPhone, formatXof } from '../format.ts'
import { useLanguage, useWords } from '../language.ts'
import { useCalm, usePaymentChanges } from '../live.ts'
import { useMe } from '../me.ts'
import { type PaymentQuery, paymentQuery } from '../operations.ts'
import { writeFilter } from '../payment-filter.ts'
import { backToList, lastListPath } from '../payment-list.ts'
import { type Fact, Facts } from '../parts/facts.tsx'
import { Missing } from '../parts/missing.tsx'
import { PaymentRow, StateBadge } from '../parts/payment-row.tsx'
import { Refund } from '../parts/refund.tsx'
import { Failure, Loading, Stale } from '../parts/states.tsx'
import { Timeline } from '../parts/timeline.tsx'
import { useSteadyQuery } from '../steady-query.ts'
import { operatorLabel } from '../operator-label.ts'

type Payment = NonNullable<PaymentQuery['transaction']>

/** One payment: what became of it, why it failed and what to do, its receipt and its refunds. */
export function PaymentScreen({ id }: { id: string }) {
  const words = useWords()
  const { data, error, again } = useSteadyQuery(paymentQuery, { id })
  const last = useRef<Payment>()
  // An answer in which the payment failed does not say that there is none: a refund may be under way.
  const payment = data?.transaction ?? (error ? last.current : undefined)
  last.current = payment
  const readSoon = useCalm(again)
  usePaymentChanges(data?.asOfSequence ?? null, (changed) => {
    // A refund is a deposit of its own, which this page may not know yet.
    if (changed.id === payment?.id || changed.transactionType === 'DEPOSIT') readSoon()
  })
  if (!data || (error && !payment)) return error ? <Failure error={error} retry={again} /> : <Loading />
  return (
    <>
      <p>
        <Link href={lastListPath()} onClick={backToList}>
          ← {words.payment.back}
        </Link>
      </p>
      {error && <Stale retry={again} />}
      {payment ? <Details payment={payment} again={again} /> : <Missing text={words.payment.missing} />}
    </>
  )
}

function Details({ payment, again }: { payment: Payment; again: () => void }) {
  const words = useWords()
  const { timeZone } = useMe()
  return (
    <div className="home">
      <div className="stack">
        <Outcome payment={payment} />
        <Actions payment={payment} again={again} />
        <PaymentFacts payment={payment} />
        {payment.refunds.length > 0 && (
          <section className="card">
            <h2>{words.payment.refunds}</h2>
            <ul className="rows">
              {payment.refunds.map((refund) => (
                <PaymentRow key={refund.id} payment={refund} timeZone={timeZone} />
              ))}
            </ul>
          </section>
        )}
      </div>
      <Timeline entries={payment.timeline} />
    </div>
  )
}

function Outcome({ payment }: { payment: Payment }) {
  const words = useWords()
  const language = useLanguage()
  const { transactionType, refundOf, amount, settledAmount, status, customerPhone } = payment
  const isOut = transactionType === 'DEPOSIT'
  const kind = refundOf ? 'refund' : isOut ? 'deposit' : 'collection'
  return (
    <section className="card">
      <h1>{words.payment[kind]}</h1>
      <p className="sum">
        {isOut ? '− ' : ''}
        {formatXof(settledAmount ?? amount, language)}
      </p>
      <p>
        <StateBadge status={status} />
      </p>
      <p className="number">
        {formatPhone(customerPhone)} <span className="soft">· {operatorLabel(payment.paymentMethod)}</span>
      </p>
      <Explanation payment={payment} />
      <p>
        <Link href={`/payments?${writeFilter({ search: formatPhone(customerPhone) })}`}>
          {words.payment.ofCustomer}
        </Link>
      </p>
    </section>
  )
}

/** Why a payment is not there yet, failed or was taken back, and what a person can do. */
function Explanation({ payment }: { payment: Payment }) {
  const words = useWords()
  const language = useLanguage()
  const { status, failure, approval, late, withheldAmount } = payment
  const isOut = payment.transactionType === 'DEPOSIT'
  const over = status === 'REVERSED' ? reversalOf(payment) : status
  const isToApprove = status === 'PENDING' && approval?.status === 'PENDING'
  return (
    <>
      {failure && (
        <div className="alert">
          <h2>{words.payment.why}</h2>
          <p>{language === 'fr' ? failure.messageFr : failure.messageEn}</p>
          <p>
            {words.payment.who[failure.who]} {words.payment.again[failure.again]}
          </p>
        </div>
      )}
      {over in words.payment.over && <p>{words.payment.over[over as keyof typeof words.payment.over]}</p>}
      {isToApprove && <p>{words.payment.approval}</p>}
      {status === 'PENDING' && !isToApprove && !isOut && <p>{words.payment.waiting}</p>}
      {status === 'PROCESSING' && <p>{words.payment.processing}</p>}
      {late && <p>{words.payment.late}</p>}
      {withheldAmount !== null && <p>{words.payment.withheld(formatXof(withheldAmount, language))}</p>}
    </>
  )
}

/** Names the explanation of money that was given back: by refunds of the merchant, or by the operator. */
function reversalOf({ transactionType, refundedAmount, settledAmount }: Payment) {
  if (transactionType === 'DEPOSIT') return 'REVERSED_OUT'
  return settledAmount !== null && refundedAmount >= settledAmount ? 'REFUNDED' : 'REVERSED'
}

function Actions({ payment, again }: { payment: Payment; again: () => void }) {
  const words = useWords()
  const { mayRefund } = useMe()
  const { transactionType, status, settledAmount, refundedAmount, refunds, receiptUrl, paymentUrl } = payment
  const underWay = refunds.filter((refund) => refund.status === 'PENDING' || refund.status === 'PROCESSING')
  const promised = underWay.reduce((sum, { amount }) => sum + amount, 0)
  const left = (settledAmount ?? 0) - refundedAmount - promised
  // Money that was given back in full stays here: the answer to the refund is read in its dialog.
  const hadMoney = transactionType === 'PAY' && settledAmount !== null
  const page = status === 'PENDING' ? paymentUrl : null
  const receipt = settledAmount === null ? null : receiptUrl
  if (!receipt && !page && !hadMoney) return null
  return (
    <section className="card">
      {receipt && <Outward href={receipt}>{words.payment.receipt}</Outward>}
      {page && <Outward href={page}>{words.payment.paymentPage}</Outward>}
      {hadMoney && mayRefund && (
        <Refund payment={payment} left={status === 'SUCCESS' ? left : 0} onAnswer={again} />
      )}
    </section>
  )
}

/** A link to a page that is not of the dashboard. */
function Outward({ href, children }: { href: string; children: ComponentChildren }) {
  return (
    <p>
      <a href={href} target="_blank" rel="noreferrer">
        {children}
      </a>
    </p>
  )
}

function PaymentFacts({ payment }: { payment: Payment }) {
  const words = useWords()
  const language = useLanguage()
  const { timeZone } = useMe()
  const moment = (at: string | null) => at && formatInstant(at, language, timeZone)
  const { amount, settledAmount, refundedAmount, paymentLink, refundOf } = payment
  const isOther = settledAmount !== null && settledAmount !== amount
  const facts: readonly Fact[] = [
    [words.payment.reference, payment.reference],
    [words.payment.operatorReference, payment.operatorReference],
    [words.payment.requested, isOther && formatXof(amount, language)],
    [words.payment.paid, isOther && formatXof(settledAmount, language)],
    [words.payment.refunded, refundedAmount > 0 && formatXof(refundedAmount, language)],
    [
      words.payments.link,
      paymentLink && (
        <Link href={`/payments?${writeFilter({ link: String(paymentLink.databaseId) })}`}>
          {paymentLink.title}
        </Link>
      ),
    ],
    [
      words.payment.refundOf,
      refundOf && <Link href={`/payments/${refundOf.databaseId}`}>{refundOf.reference}</Link>,
    ],
    [words.payment.created, moment(payment.createdAt)],
    [words.payment.settled, moment(payment.settledAt)],
    [words.payment.expires, payment.status === 'PENDING' && moment(payment.expiresAt)],
  ]
  return (
    <section className="card">
      <Facts facts={facts} />
    </section>
  )
}
