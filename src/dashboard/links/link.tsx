import { useRef, useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { dayOf, dayStart, formatMoment, formatXof } from '../format.ts'
import { type AppLanguage, useLanguage, useWords } from '../language.ts'
import { useCalm, useLinkUses, usePaymentChanges } from '../live.ts'
import { useMe } from '../me.ts'
import { type LinkQuery, linkQuery, updateLinkMutation } from '../operations.ts'
import { Activation } from '../parts/activation.tsx'
import { Facts } from '../parts/facts.tsx'
import { isId, Missing } from '../parts/missing.tsx'
import { PaymentRow } from '../parts/payment-row.tsx'
import { Failure, Loading, Stale } from '../parts/states.tsx'
import { problemText } from '../refusals.ts'
import { useSteadyQuery } from '../steady-query.ts'
import { useMutation } from '@urql/preact'
import { LinkForm } from './link-form.tsx'
import { AvailabilityBadge } from './list.tsx'
import { Share } from './share.tsx'
import { useSaveLink } from './use-save-link.ts'
import { useLinkWords } from './words.ts'

type PaymentLink = NonNullable<LinkQuery['paymentLink']>

/** One payment link. An address that no link can have is not sent to the service. */
export function LinkScreen({ id }: { id: string }) {
  const words = useLinkWords()
  return (
    <>
      <p>
        <Link href="/links">‹ {words.back}</Link>
      </p>
      {isId(id) ? <LiveLink id={id} /> : <Missing text={words.missing} />}
    </>
  )
}

/** The pause after a payment of the account, which may be one by the link (a choice). */
const paymentPauseMs = 2_000

/** A payment link, live: how to hand it on, who paid, and its changes. */
function LiveLink({ id }: { id: string }) {
  const words = useLinkWords()
  const { data, error, again } = useSteadyQuery(linkQuery, { id })
  const link = data?.paymentLink
  useLinkUses(id, data?.asOfSequence, again)
  // A payment that begins or fails is no use of the link.
  const readSoon = useCalm(again, paymentPauseMs)
  usePaymentChanges(data?.asOfSequence ?? null, ({ transactionType }) => {
    if (transactionType === 'PAY') readSoon()
  })
  if (!data) return error ? <Failure error={error} retry={again} /> : <Loading />
  return (
    <>
      {error && <Stale retry={again} />}
      {link ? (
        <div className="home">
          <div className="stack">
            <Summary link={link} again={again} />
            <Payments link={link} />
          </div>
          <Share link={link} />
        </div>
      ) : (
        <Missing text={words.missing} />
      )}
    </>
  )
}

interface Part {
  link: PaymentLink
  again: () => void
}

function Summary({ link, again }: Part) {
  const words = useLinkWords()
  const language = useLanguage()
  const { timeZone, mayMakeLinks } = useMe()
  const number = new Intl.NumberFormat(language)
  const { title, amount, description, usageCount, usageLimit, openCount, expiresAt, stats } = link
  const limit = usageLimit === null ? null : number.format(usageLimit)
  const hint = mayMakeLinks && words.openAgain[link.availability]
  return (
    <section className="card">
      <h1>
        <bdi>{title}</bdi>
      </h1>
      <p className="sum small">{amount === null ? words.anyAmount : formatXof(amount, language)}</p>
      <p role="status">
        <AvailabilityBadge availability={link.availability} />{' '}
        {words.paidTimes(number.format(usageCount), limit)}
      </p>
      {hint && <p>{hint}</p>}
      {description && (
        <p dir="auto" className="written">
          {description}
        </p>
      )}
      <Facts
        facts={[
          [words.received, stats && formatXof(stats.settledAmount, language)],
          [words.open, openCount > 0 && number.format(openCount)],
          [words.expires, expiresAt && endText(expiresAt, language, timeZone)],
        ]}
      />
      {mayMakeLinks && <Changes link={link} again={again} />}
    </section>
  )
}

/** Writes the last moment of a link: the end of a day is one of that day, and not of the next one. */
function endText(expiresAt: string, language: AppLanguage, timeZone: string): string {
  const isMidnight = dayStart(dayOf(new Date(expiresAt), timeZone), timeZone) === expiresAt
  const moment = Date.parse(expiresAt) - (isMidnight ? 60_000 : 0)
  return formatMoment(new Date(moment).toISOString(), language, timeZone)
}

function Changes({ link, again }: Part) {
  const words = useLinkWords()
  const common = useWords()
  const { timeZone } = useMe()
  const [isSaved, setSaved] = useState(false)
  const [isOpen, open] = useState(false)
  const [problem, setProblem] = useState<string>()
  // The button that had the focus goes away with its form, or becomes another one.
  const summary = useRef<HTMLElement>(null)
  const finish = () => {
    summary.current?.focus()
    again()
  }
  const { isSending, refused, save } = useSaveLink(link.id, () => {
    setSaved(true)
    open(false)
    finish()
  })
  const [{ fetching: isSwitching }, update] = useMutation(updateLinkMutation)
  const activate = async (isActive: boolean) => {
    const { data, error } = await update({ id: link.id, input: { isActive } })
    setProblem(problemText(error, data?.updatePaymentLink, common))
    setSaved(false)
    finish()
  }
  const { title, amount, description, usageLimit, expiresAt } = link
  const start = {
    title,
    amount: amount === null ? '' : String(amount),
    description: description ?? '',
    usageLimit: usageLimit === null ? '' : String(usageLimit),
    // A link is open until its last moment: the day that this moment ends.
    expiresOn: expiresAt === null ? '' : dayOf(new Date(Date.parse(expiresAt) - 1), timeZone),
  }
  return (
    <>
      {problem && (
        <p className="problem" role="alert">
          {problem}
        </p>
      )}
      <p role="status">{isSaved ? words.form.saved : ''}</p>
      <details open={isOpen} onToggle={({ currentTarget }) => open(currentTarget.open)}>
        <summary ref={summary}>{words.edit}</summary>
        {isOpen && (
          <LinkForm
            start={start}
            send={words.form.save}
            isSending={isSending}
            refused={refused}
            onSend={(input) => {
              setSaved(false)
              void save(input)
            }}
          />
        )}
      </details>
      <Activation
        isActive={link.isActive}
        words={{ end: words.close, endText: words.closeText, begin: words.reopen }}
        isSending={isSwitching}
        onChange={(isActive) => void activate(isActive)}
      />
    </>
  )
}

function Payments({ link }: Pick<Part, 'link'>) {
  const words = useLinkWords()
  const { timeZone } = useMe()
  const { payments, databaseId } = link
  return (
    <section className="card">
      <h2>{words.payments}</h2>
      {payments.nodes.length === 0 && <p>{words.noPayment}</p>}
      <ul className="rows">
        {payments.nodes.map((payment) => (
          <PaymentRow key={payment.id} payment={payment} timeZone={timeZone} />
        ))}
      </ul>
      {payments.nodes.length > 0 && (
        <p>
          <Link href={`/payments?link=${databaseId}`}>{words.allPayments}</Link>
        </p>
      )}
    </section>
  )
}
