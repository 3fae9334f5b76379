import type { JSX } from 'preact'
import { Link, useLocation, useSearch } from 'wouter-preact'
import { formatMoment, formatPhone, formatXof } from '../format.ts'
import { useLanguage, useWords } from '../language.ts'
import { usePayoutChanges } from '../live.ts'
import { useMe } from '../me.ts'
import { type PayoutRowFragment, type PayoutStatus, payoutsQuery } from '../operations.ts'
import { PagesBar, usePages } from '../parts/pages.tsx'
import { Failure, Loading, Stale } from '../parts/states.tsx'
import { isSearchable } from '../payment-filter.ts'
import { useSteadyQuery } from '../steady-query.ts'
import { usePayoutWords } from './words.ts'
import { operatorLabel } from '../operator-label.ts'

/** The payouts of one page. Choice: two screens of a telephone. */
const pageSize = 20

/** The statuses as people ask for them; null for all. */
const groups = {
  all: null,
  waiting: ['PENDING', 'PROCESSING'],
  paid: ['COMPLETED'],
  failed: ['FAILED', 'CANCELLED'],
} as const satisfies Record<string, readonly PayoutStatus[] | null>
type Group = keyof typeof groups

interface Choice {
  group: Group
  search: string
}

/** Reads the choice from the parameters of an address. */
function choiceOf(query: string): Choice {
  const given = new URLSearchParams(query)
  const name = given.get('status') ?? ''
  return {
    group: Object.hasOwn(groups, name) ? (name as Group) : 'all',
    search: (given.get('search') ?? '').trim(),
  }
}

/** Writes the address of the list with a choice. */
function pathOf({ group, search }: Choice): string {
  const fields = { ...(group !== 'all' && { status: group }), ...(search !== '' && { search }) }
  const query = new URLSearchParams(fields).toString()
  return query === '' ? '/payouts' : `/payouts?${query}`
}

/** All payouts, the newest first, live, and the ways to a new one and to the saved people. */
export function PayoutsScreen() {
  const words = usePayoutWords()
  const { mayPayOut } = useMe()
  const query = useSearch()
  const choice = choiceOf(query)
  return (
    <>
      <h1>{useWords().payouts}</h1>
      <p className="bar">
        {mayPayOut && (
          <Link href="/payouts/new" className="action">
            {words.start}
          </Link>
        )}
        <Link href="/payouts/people">{words.people.title}</Link>
      </p>
      <Search key={query} choice={choice} />
      <List key={`list ${query}`} choice={choice} />
    </>
  )
}

function Search({ choice }: { choice: Choice }) {
  const words = usePayoutWords()
  const { payments } = useWords()
  const [, goTo] = useLocation()
  const apply = (event: JSX.TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault()
    const typed = new FormData(event.currentTarget).get('search')
    goTo(pathOf({ ...choice, search: typeof typed === 'string' ? typed.trim() : '' }))
  }
  return (
    <>
      <form className="card filter" role="search" onSubmit={apply}>
        <div className="search">
          <input
            type="search"
            name="search"
            aria-label={words.search}
            placeholder={words.searchHint}
            defaultValue={choice.search}
            maxLength={100}
            enterKeyHint="search"
          />
          <button type="submit" className="small">
            {payments.find}
          </button>
        </div>
      </form>
      {!isSearchable(choice.search) && (
        <p className="problem" role="alert">
          {payments.searchTooShort}
        </p>
      )}
      <nav className="bar" aria-label={payments.status}>
        {(Object.keys(groups) as Group[]).map((group) => (
          <Link
            key={group}
            href={pathOf({ ...choice, group })}
            className="chip"
            aria-current={group === choice.group ? 'true' : undefined}
          >
            {words.groups[group]}
          </Link>
        ))}
      </nav>
    </>
  )
}

function List({ choice: { group, search } }: { choice: Choice }) {
  const words = usePayoutWords()
  const pages = usePages()
  const status = groups[group]
  const { data, error, again } = useSteadyQuery(payoutsQuery, {
    first: pageSize,
    ...(pages.after !== undefined && { after: pages.after }),
    filter: { ...(status && { status }), ...(search !== '' && isSearchable(search) && { search }) },
  })
  usePayoutChanges(data?.asOfSequence, again)
  const payouts = data?.payouts
  if (!payouts) return error ? <Failure error={error} retry={again} /> : <Loading />
  const isFiltered = group !== 'all' || search !== ''
  return (
    <section className="card">
      {error && <Stale retry={again} />}
      {payouts.totalCount === 0 && <p>{isFiltered ? words.noneFound : words.none}</p>}
      {payouts.totalCount === 0 && !isFiltered && <p className="soft">{words.lead}</p>}
      <ul className="rows">
        {payouts.nodes.map((payout) => (
          <PayoutRow key={payout.id} payout={payout} />
        ))}
      </ul>
      <PagesBar pages={pages} pageInfo={payouts.pageInfo} words={words} />
    </section>
  )
}

/** One payout of a list: its payee, moment, amount and state. */
export function PayoutRow({ payout }: { payout: PayoutRowFragment }) {
  const words = usePayoutWords()
  const language = useLanguage()
  const { timeZone } = useMe()
  const { databaseId, beneficiaryName, destinationPhone, paymentMethod, reference, failure } = payout
  const number = formatPhone(destinationPhone)
  const moment = (at: string) => formatMoment(at, language, timeZone)
  const isComing = payout.status === 'PENDING' && payout.scheduledAt !== null
  return (
    <li>
      <div>
        <Link href={`/payouts/${databaseId}`} className="wide-link">
          {beneficiaryName === null ? number : <bdi>{beneficiaryName}</bdi>}
        </Link>
        <p className="soft line">
          {beneficiaryName !== null && `${number} · `}
          {operatorLabel(paymentMethod)}
        </p>
        <p className="soft">
          {isComing ? words.scheduledFor(moment(payout.scheduledAt ?? '')) : moment(payout.createdAt)}
        </p>
        <p className="soft reference">{reference}</p>
        {failure && <p className="problem">{language === 'fr' ? failure.messageFr : failure.messageEn}</p>}
      </div>
      <div className="end">
        <strong className="number">{formatXof(payout.settledAmount ?? payout.amount, language)}</strong>
        <p>
          <PayoutBadge payout={payout} />
        </p>
      </div>
    </li>
  )
}

/** The state of a payout as a person sees it. */
export type PayoutState = PayoutStatus | 'APPROVAL' | 'SCHEDULED' | 'REVERSED'

/** Returns the state of a payout: what a pending one waits for, and whether a paid one came back. */
export function stateOf({ status, approval, scheduledAt, reversedAt }: PayoutRowFragment): PayoutState {
  if (reversedAt !== null) return 'REVERSED'
  if (status !== 'PENDING') return status
  if (approval.status === 'PENDING') return 'APPROVAL'
  return scheduledAt === null ? 'PENDING' : 'SCHEDULED'
}

/** The state of a payout in one word, with its colour. */
export function PayoutBadge({ payout }: { payout: PayoutRowFragment }) {
  const words = usePayoutWords()
  const state = stateOf(payout)
  return <span className={`state ${tones[state] ?? ''}`}>{words.states[state]}</span>
}

const tones: Readonly<Partial<Record<PayoutState, string>>> = {
  COMPLETED: 'good',
  FAILED: 'bad',
  REVERSED: 'bad',
  CANCELLED: 'over',
}
