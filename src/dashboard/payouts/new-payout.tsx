import { useState } from 'preact/hooks'
import { Link, useLocation, useSearch } from 'wouter-preact'
import { formatPhone } from '../format.ts'
import { useMe } from '../me.ts'
import { type PayeeFragment, payeeQuery, payoutMeansQuery, payoutQuery } from '../operations.ts'
import { isId } from '../parts/missing.tsx'
import { Failure, Loading } from '../parts/states.tsx'
import { useSteadyQuery } from '../steady-query.ts'
import { CheckPayout } from './check-payout.tsx'
import { type PayoutDraft, PayoutForm } from './payout-form.tsx'
import { usePayout } from './use-payout.ts'
import { usePayoutWords } from './words.ts'

const emptyDraft: PayoutDraft = {
  phone: '',
  operator: '',
  amount: '',
  isLater: false,
  day: '',
  time: '08:00',
  reference: '',
}

/** A new payout: to a number, to a saved person (`?person=7`), or as an earlier one (`?again=7`). */
export function NewPayoutScreen() {
  const words = usePayoutWords()
  const { mayPayOut } = useMe()
  const query = useSearch()
  const given = new URLSearchParams(query)
  const [person, earlier] = ['person', 'again'].map((name) => {
    const id = given.get(name) ?? ''
    return isId(id) ? id : null
  }) as [string | null, string | null]
  return (
    <>
      <p>
        <Link href="/payouts">‹ {words.back}</Link>
      </p>
      <h1>{words.start}</h1>
      {!mayPayOut && (
        <section className="card">
          <p>{words.mayNot}</p>
        </section>
      )}
      {mayPayOut && earlier !== null && <OrderAgain key={query} id={earlier} />}
      {mayPayOut && earlier === null && person !== null && (
        <OrderTo key={query} id={person} draft={emptyDraft} />
      )}
      {mayPayOut && earlier === null && person === null && <Order payee={null} start={emptyDraft} />}
    </>
  )
}

/** A payout with the payee and the amount of an earlier one. */
function OrderAgain({ id }: { id: string }) {
  const { data, error, again } = useSteadyQuery(payoutQuery, { id })
  if (!data) return error ? <Failure error={error} retry={again} /> : <Loading />
  const { payout } = data
  if (!payout) return <Order payee={null} start={emptyDraft} />
  const { amount, beneficiary, destinationPhone, paymentMethod } = payout
  const draft = { ...emptyDraft, amount: String(amount) }
  if (beneficiary) return <OrderTo id={beneficiary.id} draft={draft} />
  const phone = formatPhone(destinationPhone)
  return <Order payee={null} start={{ ...draft, phone, operator: paymentMethod }} />
}

/** A payout to a saved person. */
function OrderTo({ id, draft }: { id: string; draft: PayoutDraft }) {
  const { people } = usePayoutWords()
  const { data, error, again } = useSteadyQuery(payeeQuery, { id })
  if (!data) return error ? <Failure error={error} retry={again} /> : <Loading />
  const payee = data.beneficiary
  if (payee?.isActive && payee.paymentMethod !== 'BankTransfer') return <Order payee={payee} start={draft} />
  return (
    <section className="card">
      <p>{payee ? people.cannotBePaid : people.missing}</p>
      <p>
        <Link href="/payouts/people">{people.title}</Link>
      </p>
    </section>
  )
}

function Order({ payee, start }: { payee: PayeeFragment | null; start: PayoutDraft }) {
  const [, goTo] = useLocation()
  const [draft, setDraft] = useState(start)
  const { data } = useSteadyQuery(payoutMeansQuery, {})
  const payout = usePayout((id) => goTo(`/payouts/${id}`, { replace: true }))
  const available = data?.balance?.available ?? null
  return (
    <section className="card request">
      {payout.step === 'typing' ? (
        <PayoutForm
          draft={draft}
          onDraft={setDraft}
          payee={payee}
          available={available}
          refused={payout.refused}
          problem={payout.problem}
          isBack={payout.order !== null}
          onCheck={payout.check}
        />
      ) : (
        <CheckPayout payout={payout} available={available} operators={data?.operators ?? []} />
      )}
    </section>
  )
}
