import { useMutation } from '@urql/preact'
import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { formatDeparture, formatInstant, formatPhone, formatXof, isolate } from '../format.ts'
import { useLanguage, useWords } from '../language.ts'
import { usePayoutChanges } from '../live.ts'
import { useMe } from '../me.ts'
import { cancelPayoutMutation, type PayoutQuery, payoutQuery } from '../operations.ts'
import { Confirmation } from '../parts/confirmation.tsx'
import { Facts } from '../parts/facts.tsx'
import { isId, Missing } from '../parts/missing.tsx'
import { Failure, Loading, Stale } from '../parts/states.tsx'
import { problemText, refusalOf } from '../refusals.ts'
import { useSteadyQuery } from '../steady-query.ts'
import { authorOf } from '../waiting.ts'
import { PayoutBadge, stateOf } from './list.tsx'
import { usePayoutWords } from './words.ts'
import { operatorLabel } from '../operator-label.ts'

export type Payout = NonNullable<PayoutQuery['payout']>

/** One payout. */
export function PayoutScreen({ id }: { id: string }) {
  const words = usePayoutWords()
  return (
    <>
      <p>
        <Link href="/payouts">‹ {words.back}</Link>
      </p>
      {isId(id) ? <LivePayout id={id} /> : <Missing text={words.missing} />}
    </>
  )
}

/** A payout, live: what became of it, why it failed and what to do, and the way to cancel it. */
function LivePayout({ id }: { id: string }) {
  const words = usePayoutWords()
  const { data, error, again } = useSteadyQuery(payoutQuery, { id })
  usePayoutChanges(data?.asOfSequence, again)
  if (!data) return error ? <Failure error={error} retry={again} /> : <Loading />
  const { payout } = data
  return (
    <>
      {error && <Stale retry={again} />}
      {payout ? (
        <div className="home">
          <Outcome payout={payout} again={again} />
          <PayoutFacts payout={payout} />
        </div>
      ) : (
        <Missing text={words.missing} />
      )}
    </>
  )
}

function Outcome({ payout, again }: { payout: Payout; again: () => void }) {
  const words = usePayoutWords()
  const language = useLanguage()
  const { beneficiaryName, destinationPhone, paymentMethod, settledAmount, amount, withheldAmount } = payout
  const common = useWords()
  const { mayPayOut } = useMe()
  const number = formatPhone(destinationPhone)
  const state = stateOf(payout)
  const isOver = state === 'FAILED' || state === 'CANCELLED' || state === 'REVERSED'
  return (
    <section className="card">
      <h1>{common.home.payoutTo(beneficiaryName === null ? number : isolate(beneficiaryName))}</h1>
      <p className="sum">{formatXof(settledAmount ?? amount, language)}</p>
      <p role="status">
        <PayoutBadge payout={payout} />
      </p>
      <p className="number">
        {number} <span className="soft">· {operatorLabel(paymentMethod)}</span>
      </p>
      <Reason payout={payout} />
      <p>{words.explanations[state]}</p>
      {withheldAmount !== null && <p>{common.payment.withheld(formatXof(withheldAmount, language))}</p>}
      {state === 'APPROVAL' && (
        <p>
          <Link href="/approvals">{words.decide}</Link>
        </p>
      )}
      {mayPayOut && <Cancel payout={payout} again={again} />}
      {mayPayOut && isOver && (
        <p>
          <Link href={`/payouts/new?again=${payout.databaseId}`}>{words.again}</Link>
        </p>
      )}
    </section>
  )
}

/** Why a payout failed and who can do something, or who rejected it and why. */
function Reason({ payout: { failure, approval } }: { payout: Payout }) {
  const words = usePayoutWords()
  const { payment } = useWords()
  const language = useLanguage()
  const { reason, rejectedBy } = approval
  return (
    <>
      {failure && (
        <div className="alert">
          <h2>{payment.why}</h2>
          <p>{language === 'fr' ? failure.messageFr : failure.messageEn}</p>
          <p>
            {payment.who[failure.who]} {payment.again[failure.again]}
          </p>
        </div>
      )}
      {reason && rejectedBy && (
        <p className="problem">{words.rejectedBecause(isolate(rejectedBy.member.name), isolate(reason))}</p>
      )}
    </>
  )
}

/** The button that cancels a payout which was not sent yet. */
function Cancel({ payout: { id, status }, again }: { payout: Payout; again: () => void }) {
  const { cancel: words } = usePayoutWords()
  const common = useWords()
  const [problem, setProblem] = useState<string>()
  const [{ fetching }, cancel] = useMutation(cancelPayoutMutation)
  const onConfirm = async () => {
    const { data, error } = await cancel({ id })
    const isTooLate = refusalOf(data?.cancelPayout)?.code === 'STATE_CONFLICT'
    setProblem(isTooLate ? words.tooLate : problemText(error, data?.cancelPayout, common))
    again()
  }
  return (
    <>
      {problem && (
        <p className="problem" role="alert">
          {problem}
        </p>
      )}
      {status === 'PENDING' && (
        <Confirmation name={words.name} isSending={fetching} onConfirm={() => void onConfirm()}>
          {words.text}
        </Confirmation>
      )}
    </>
  )
}

function PayoutFacts({ payout }: { payout: Payout }) {
  const words = usePayoutWords()
  const common = useWords()
  const { payment, approvals } = common
  const language = useLanguage()
  const { timeZone } = useMe()
  const { approval, beneficiary, beneficiaryName, scheduledAt, settledAt, settledAmount, amount } = payout
  const instant = (at: string | null) => at && formatInstant(at, language, timeZone)
  const isOther = settledAmount !== null && settledAmount !== amount
  const given = approval.approvedBy.filter(({ counts }) => counts)
  const names = given.map(({ member }) => isolate(member.name)).join(', ')
  const count = approvals.count(given.length, approval.required)
  return (
    <section className="card">
      <Facts
        facts={[
          [
            words.facts.saved,
            beneficiary && (
              <Link href={`/payouts/people/${beneficiary.databaseId}`}>
                <bdi>{beneficiaryName}</bdi>
              </Link>
            ),
          ],
          [payment.reference, payout.reference],
          [payment.operatorReference, payout.operatorReference],
          [payment.requested, isOther && formatXof(amount, language)],
          [payment.paid, isOther && formatXof(settledAmount, language)],
          [words.facts.when, scheduledAt && formatDeparture(scheduledAt, language, timeZone)],
          [words.facts.createdBy, authorOf(payout.createdBy, common)],
          [approvals.given, approval.required > 0 && count + (names && ` · ${names}`)],
          [approvals.until, approval.status === 'PENDING' && instant(approval.expiresAt)],
          [payment.created, instant(payout.createdAt)],
          [payment.settled, instant(settledAt)],
        ]}
      />
    </section>
  )
}
