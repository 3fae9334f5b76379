import { useClient, useMutation } from '@urql/preact'
import { useState } from 'preact/hooks'
import { Link, useLocation } from 'wouter-preact'
import { onceUnder } from '../client.ts'
import { formatPhone } from '../format.ts'
import { useWords } from '../language.ts'
import { usePayoutChanges } from '../live.ts'
import { useMe } from '../me.ts'
import {
  createPayeeMutation,
  type PayeeFragment,
  payeeQuery,
  payoutsToQuery,
  updatePayeeMutation,
} from '../operations.ts'
import { Activation } from '../parts/activation.tsx'
import { isId, Missing } from '../parts/missing.tsx'
import { Failure, Loading, Stale } from '../parts/states.tsx'
import { problemText } from '../refusals.ts'
import { useSteadyQuery } from '../steady-query.ts'
import { useSave } from '../use-save.ts'
import { PayoutRow } from './list.tsx'
import { type PayeeDraft, payeeFields, PayeeForm, type PayeeInput } from './payee-form.tsx'
import { usePayoutWords } from './words.ts'
import { operatorLabel } from '../operator-label.ts'

const emptyDraft: PayeeDraft = { name: '', account: '', paymentMethod: '', category: 'CUSTOMER' }

/** A new saved person. */
export function NewPayeeScreen() {
  const { people: words } = usePayoutWords()
  const { maySavePeople } = useMe()
  const client = useClient()
  const [, goTo] = useLocation()
  const create = (input: PayeeInput, key: string) =>
    client.mutation(createPayeeMutation, { input }, onceUnder(key)).toPromise()
  const { isSending, refused, save } = useSave(payeeFields, create, (id) =>
    goTo(`/payouts/people/${id}`, { replace: true }),
  )
  return (
    <>
      <p>
        <Link href="/payouts/people">‹ {words.title}</Link>
      </p>
      <h1>{words.add}</h1>
      <section className="card request">
        {maySavePeople ? (
          <PayeeForm
            start={emptyDraft}
            isSending={isSending}
            refused={refused}
            onSend={(input) => void save(input)}
          />
        ) : (
          <p>{words.mayNot}</p>
        )}
      </section>
    </>
  )
}

/** One saved person. */
export function PayeeScreen({ id }: { id: string }) {
  const { people: words } = usePayoutWords()
  return (
    <>
      <p>
        <Link href="/payouts/people">‹ {words.title}</Link>
      </p>
      {isId(id) ? <Payee id={id} /> : <Missing text={words.missing} />}
    </>
  )
}

/** A saved person: the way to pay, the changes, and the last payouts. */
function Payee({ id }: { id: string }) {
  const { people: words } = usePayoutWords()
  const { data, error, again } = useSteadyQuery(payeeQuery, { id })
  if (!data) return error ? <Failure error={error} retry={again} /> : <Loading />
  const payee = data.beneficiary
  return (
    <>
      {error && <Stale retry={again} />}
      {payee ? (
        <div className="home">
          <Summary payee={payee} again={again} />
          <LastPayouts id={payee.id} />
        </div>
      ) : (
        <Missing text={words.missing} />
      )}
    </>
  )
}

interface Part {
  payee: PayeeFragment
  again: () => void
}

function Summary({ payee, again }: Part) {
  const { people: words } = usePayoutWords()
  const { mayPayOut, maySavePeople } = useMe()
  const isPayable = payee.isActive && payee.paymentMethod !== 'BankTransfer'
  return (
    <section className="card">
      <h1>
        <bdi>{payee.name}</bdi>
      </h1>
      <p className="number">
        {formatPhone(payee.account)} <span className="soft">· {operatorLabel(payee.paymentMethod)}</span>
      </p>
      <p className="soft">{words.categories[payee.category]}</p>
      {!payee.isActive && (
        <p>
          <span className="state over">{words.inactive}</span>
        </p>
      )}
      {payee.paymentMethod === 'BankTransfer' && <p className="soft">{words.bank}</p>}
      {mayPayOut && isPayable && (
        <p>
          <Link href={`/payouts/new?person=${payee.databaseId}`} className="action">
            {words.pay}
          </Link>
        </p>
      )}
      {maySavePeople && <Changes payee={payee} again={again} />}
    </section>
  )
}

function Changes({ payee, again }: Part) {
  const { people: words } = usePayoutWords()
  const common = useWords()
  const client = useClient()
  const [isSaved, setSaved] = useState(false)
  const [isOpen, open] = useState(false)
  const [problem, setProblem] = useState<string>()
  const change = (input: PayeeInput) =>
    client.mutation(updatePayeeMutation, { id: payee.id, input: changed(input, payee) }).toPromise()
  const { isSending, refused, save } = useSave(payeeFields, change, () => {
    setSaved(true)
    open(false)
    again()
  })
  const [{ fetching: isSwitching }, update] = useMutation(updatePayeeMutation)
  const activate = async (isActive: boolean) => {
    const { data, error } = await update({ id: payee.id, input: { isActive } })
    setProblem(problemText(error, data?.updateBeneficiary, common))
    again()
  }
  const { name, account, paymentMethod, category } = payee
  return (
    <>
      {problem && (
        <p className="problem" role="alert">
          {problem}
        </p>
      )}
      <p role="status">{isSaved ? words.saved : ''}</p>
      <details open={isOpen} onToggle={({ currentTarget }) => open(currentTarget.open)}>
        <summary>{words.edit}</summary>
        {isOpen && (
          <PayeeForm
            start={{ name, account: formatPhone(account), paymentMethod, category }}
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
        isActive={payee.isActive}
        words={{ end: words.deactivate, endText: words.deactivateText, begin: words.activate }}
        isSending={isSwitching}
        onChange={(isActive) => void activate(isActive)}
      />
    </>
  )
}

/** The fields that the person changed: the others may have been changed in another window meanwhile. */
function changed(input: PayeeInput, { name, account, paymentMethod, category }: PayeeFragment) {
  return {
    ...(input.name !== name && { name: input.name }),
    ...(input.account !== formatPhone(account) && { account: input.account }),
    ...(input.paymentMethod !== paymentMethod && { paymentMethod: input.paymentMethod }),
    ...(input.category !== category && { category: input.category }),
  }
}

function LastPayouts({ id }: { id: string }) {
  const words = usePayoutWords()
  const { data, error, again } = useSteadyQuery(payoutsToQuery, { id })
  usePayoutChanges(data?.asOfSequence, again)
  const payouts = data?.payouts?.nodes
  return (
    <section className="card">
      <h2>{words.people.payouts}</h2>
      {!payouts && (error ? <Failure error={error} retry={again} /> : <Loading />)}
      {payouts?.length === 0 && <p>{words.none}</p>}
      <ul className="rows">
        {payouts?.map((payout) => (
          <PayoutRow key={payout.id} payout={payout} />
        ))}
      </ul>
    </section>
  )
}
