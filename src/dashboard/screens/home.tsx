import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { dayOf, formatMoment, formatShare, formatXof, usualZone } from '../format.ts'
import { useLanguage, useWords } from '../language.ts'
import { useLiveness, useMoneyChanges } from '../live.ts'
import { type FiguresFragment, type HomeQuery, homeQuery } from '../operations.ts'
import { MonthChart } from '../parts/month-chart.tsx'
import { PaymentRow } from '../parts/payment-row.tsx'
import { Failure, FirstSteps, Loading, Stale } from '../parts/states.tsx'
import { useSteadyQuery } from '../steady-query.ts'
import { amountOf, nameOf } from '../waiting.ts'
import { operatorLabel } from '../operator-label.ts'

const dayMs = 86_400_000
const chartDays = 30
/** The pause between two reads of the screen where no money moves. */
const healthMs = 60_000

/** The first screen: the money now and today, the last 30 days, what waits, and the last payments, live. */
export function HomeScreen() {
  const words = useWords()
  // A page that stays open for days asks for other days with each read.
  const from = dayOf(new Date(Date.now() - (chartDays - 1) * dayMs))
  const { data, error, again } = useSteadyQuery(homeQuery, { from })
  useMoneyChanges(data?.asOfSequence, again)
  // The health of an operator changes without an event.
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') again()
    }, healthMs)
    return () => clearInterval(timer)
  }, [])
  if (!data) return error ? <Failure error={error} retry={again} /> : <Loading />
  return (
    <div className="home">
      <h1 className="unseen">{words.home.title}</h1>
      {error && <Stale retry={again} />}
      <div className="stack">
        <Money data={data} />
        <Waiting data={data} />
        <Operators data={data} />
      </div>
      <Month data={data} />
      <LastPayments data={data} />
    </div>
  )
}

interface Part {
  data: HomeQuery
}

/** A part of the screen; it says where the service could not read its data, which is not the same as none. */
function Card(props: { title: string; isThere: boolean; isWide?: boolean; children: ComponentChildren }) {
  const words = useWords()
  return (
    <section className={props.isWide ? 'card wide' : 'card'}>
      <h2>{props.title}</h2>
      {props.isThere ? props.children : <p className="problem">{words.home.unavailable}</p>}
    </section>
  )
}

/** The days of the figures with the money that came and stayed: what an operator took back does not count. */
function daysOf({ buckets }: FiguresFragment) {
  return buckets.slice(-chartDays).map(({ start, groups }) => {
    const succeeded = groups.filter(({ status }) => status === 'SUCCESS')
    const sum = (pick: (group: (typeof groups)[number]) => number) =>
      succeeded.reduce((total, group) => total + pick(group), 0)
    return { start, count: sum(({ count }) => count), amount: sum((group) => group.settledAmount) }
  })
}

/** The money of the newest day, by the clock of the service. */
const todayOf = (figures: FiguresFragment) => daysOf(figures).at(-1)?.amount ?? 0

function Money({ data: { balance, in: received, out } }: Part) {
  const words = useWords()
  const language = useLanguage()
  return (
    <Card title={words.home.available} isThere={balance !== null}>
      <p className="sum">{formatXof(balance?.available ?? 0, language)}</p>
      {balance !== null && balance.reserved > 0 && (
        <p className="soft">
          {words.home.reserved} <strong className="number">{formatXof(balance.reserved, language)}</strong>
        </p>
      )}
      {balance !== null && balance.receivable > 0 && (
        <p className="problem">
          {words.home.receivable} {formatXof(balance.receivable, language)}
        </p>
      )}
      <dl className="pair">
        <div>
          <dt>{words.home.todayIn}</dt>
          <dd className="number">{received ? formatXof(todayOf(received), language) : '–'}</dd>
        </div>
        <div>
          <dt>{words.home.todayOut}</dt>
          <dd className="number">{out ? formatXof(todayOf(out), language) : '–'}</dd>
        </div>
      </dl>
    </Card>
  )
}

function Waiting({ data: { approvalsWaiting } }: Part) {
  const words = useWords()
  const language = useLanguage()
  if (approvalsWaiting?.totalCount === 0) return null
  return (
    <Card title={words.home.waiting(approvalsWaiting?.totalCount ?? 0)} isThere={approvalsWaiting !== null}>
      <ul className="rows">
        {approvalsWaiting?.nodes.map((one) => (
          <li key={one.id}>
            <div>{nameOf(one, words)}</div>
            <strong className="number">{amountOf(one, language)}</strong>
          </li>
        ))}
      </ul>
      {approvalsWaiting !== null && approvalsWaiting.totalCount > approvalsWaiting.nodes.length && (
        <p className="soft">{words.home.more(approvalsWaiting.totalCount - approvalsWaiting.nodes.length)}</p>
      )}
      <p>
        <Link href="/approvals">{words.home.decide}</Link>
      </p>
    </Card>
  )
}

function Month({ data: { in: received } }: Part) {
  const words = useWords()
  const language = useLanguage()
  if (received?.total.count === 0) return null
  const days = received ? daysOf(received) : []
  const successRate = received?.total.successRate ?? null
  const sum = days.reduce((total, { amount }) => total + amount, 0)
  return (
    <Card title={words.home.month} isThere={received !== null}>
      <p className="sum small">{formatXof(sum, language)}</p>
      {successRate !== null && (
        <p className="soft">{words.home.success(formatShare(successRate, language))}</p>
      )}
      <MonthChart days={days} timeZone={received?.timeZone ?? usualZone} />
    </Card>
  )
}

function Operators({ data: { operators, in: received } }: Part) {
  const words = useWords()
  const language = useLanguage()
  const troubled = (operators ?? []).filter(
    ({ collect, disburse }) => collect !== 'OPERATIONAL' || disburse !== 'OPERATIONAL',
  )
  return (
    <Card title={words.home.operators} isThere={operators !== null}>
      {troubled.length === 0 ? (
        <p className="soft">{words.home.operatorsWork}</p>
      ) : (
        <ul className="rows">
          {troubled.map(({ paymentMethod, collect, disburse, since }) => (
            <li key={paymentMethod}>
              <div>
                <strong>{operatorLabel(paymentMethod)}</strong>
                <p className="soft">{words.home.since(formatMoment(since, language, received?.timeZone))}</p>
              </div>
              <p className="problem">{words.home.health(words.healths[collect], words.healths[disburse])}</p>
            </li>
          ))}
        </ul>
      )}
    </Card>
  )
}

function LastPayments({ data: { transactions, in: received } }: Part) {
  const words = useWords()
  const liveness = useLiveness()
  const payments = transactions?.nodes ?? []
  return (
    <Card title={words.home.last} isThere={transactions !== null} isWide>
      <p className={`liveness ${liveness}`} role="status">
        {words.home[liveness]}
      </p>
      {payments.length === 0 ? (
        <FirstSteps />
      ) : (
        <ul className="rows">
          {payments.map((payment) => (
            <PaymentRow key={payment.id} payment={payment} timeZone={received?.timeZone ?? usualZone} />
          ))}
        </ul>
      )}
      {payments.length > 0 && (
        <p>
          <Link href="/payments">{words.home.allPayments}</Link>
        </p>
      )}
    </Card>
  )
}
