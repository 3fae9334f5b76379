import { useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { formatPhone } from '../format.ts'
import { useLanguage, useWords } from '../language.ts'
import { useMe } from '../me.ts'
import type { PayeeFragment } from '../operations.ts'
import { Failure, Loading, Stale } from '../parts/states.tsx'
import { foundPeople, peopleMax, usePeople } from './use-people.ts'
import { usePayoutWords } from './words.ts'
import { operatorLabel } from '../operator-label.ts'

/** The people drawn before the reader asks for more: the search finds the others. Choice: five screens. */
const shownAtFirst = 50

/** The people that are saved for payouts, by name, searched while the reader types. */
export function PeopleScreen() {
  const { people: words, back } = usePayoutWords()
  const { maySavePeople } = useMe()
  const [search, setSearch] = useState('')
  const [isAll, showAll] = useState(false)
  const { people, isCut, error, again } = usePeople(!isAll)
  const number = new Intl.NumberFormat(useLanguage())
  return (
    <>
      <p>
        <Link href="/payouts">‹ {back}</Link>
      </p>
      <h1>{words.title}</h1>
      {maySavePeople && (
        <p>
          <Link href="/payouts/people/new" className="action">
            {words.add}
          </Link>
        </p>
      )}
      {!people && (error ? <Failure error={error} retry={again} /> : <Loading />)}
      {people && error && <Stale retry={again} />}
      {people && (
        <section className="card">
          {(people.length > 0 || search !== '') && (
            <div className="search">
              <input
                type="search"
                aria-label={words.search}
                placeholder={words.search}
                value={search}
                autoComplete="off"
                onInput={({ currentTarget }) => setSearch(currentTarget.value)}
              />
            </div>
          )}
          {people.length === 0 && <p>{words.none}</p>}
          {people.length === 0 && <p className="soft">{words.lead}</p>}
          <Found key={search} people={foundPeople(people, search)} isSearched={search !== ''} />
          {isCut && <p className="soft">{words.some(number.format(peopleMax))}</p>}
          <label className="check">
            <input type="checkbox" checked={isAll} onChange={() => showAll(!isAll)} />
            {words.all}
          </label>
        </section>
      )}
    </>
  )
}

function Found({ people, isSearched }: { people: readonly PayeeFragment[]; isSearched: boolean }) {
  const { people: words } = usePayoutWords()
  const { payments } = useWords()
  const [max, setMax] = useState(shownAtFirst)
  return (
    <>
      {isSearched && people.length === 0 && <p role="status">{words.noneFound}</p>}
      <ul className="rows">
        {people.slice(0, max).map((payee) => (
          <PayeeRow key={payee.id} payee={payee} />
        ))}
      </ul>
      {people.length > max && (
        <button type="button" className="quiet" onClick={() => setMax(max + shownAtFirst)}>
          {payments.older}
        </button>
      )}
    </>
  )
}

function PayeeRow({ payee }: { payee: PayeeFragment }) {
  const { people: words } = usePayoutWords()
  const { databaseId, name, account, paymentMethod, category, isActive } = payee
  return (
    <li>
      <div>
        <Link href={`/payouts/people/${databaseId}`} className="wide-link">
          <bdi>{name}</bdi>
        </Link>
        <p className="soft">
          {formatPhone(account)} · {operatorLabel(paymentMethod)}
        </p>
      </div>
      <div className="end">
        <p className="soft">{words.categories[category]}</p>
        {!isActive && <span className="state over">{words.inactive}</span>}
      </div>
    </li>
  )
}
