import { useQuery } from '@urql/preact'
import { useMemo } from 'preact/hooks'
import { dayOf, formatMoment, formatPhone, formatShare, formatXof } from '../format.ts'
import { useLanguage, useWords } from '../language.ts'
import { useIsLive, usePaymentChanges } from '../live.ts'
import { type HomeQuery, homeQuery } from '../operations.ts'
import { mode } from '../page-facts.ts'
import { MonthChart } from '../parts/month-chart.tsx'
import { PaymentRow } from '../parts/payment-row.tsx'
import { Failure, Loading } from '../parts/states.tsx'

const dayMs = 86_400_000
const chartDays = 30

/** The first screen: the money now and today, the last 30 days, what waits, and the last payments, live. */
export function HomeScreen() {
  const words = useWords()
  const variables = useMemo(() => {
    const now = new Date()
    return { today: dayOf(now), monthFrom: dayOf(new Date(now.getTime() - (chartDays - 1) * dayMs)) }
  }, [])
  const [{ data, error }, read] = useQuery({
    query: homeQuery,
    variables,
    requestPolicy: 'cache-and-network',
  })
  const again = () => read({ requestPolicy: 'network-only' })
  usePaymentChanges(data?.asOfSequence, again)
  if (error && !data) return <Failure error={error} retry={again} />
  if (!data) return <Loading />
  return (
    <div className="home">
      <h1 className="unseen">{words.home.title}</h1>
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

function Money({ data: { balance, month, out } }: Part) {
  const words = useWords()
  const language = useLanguage()
  const today = month?.buckets.at(-1)
  if (!balance) return null
  return (
    <section className="card money">
      <h2>{words.home.available}</h2>
      <p className="sum">{formatXof(balance.available, language)}</p>
      {balance.reserved > 0 && (
        <p className="soft">
          {words.home.reserved} <strong>{formatXof(balance.reserved, language)}</strong>
        </p>
      )}
      {balance.receivable > 0 && (
        <p className="problem">
          {words.home.receivable} {formatXof(balance.receivable, language)}
        </p>
      )}
      <dl className="pair">
        <div>
          <dt>{words.home.todayIn}</dt>
          <dd className="number">{formatXof(today?.settledAmount ?? 0, language)}</dd>
        </div>
        <div>
          <dt>{words.home.todayOut}</dt>
          <dd className="number">{formatXof(out?.total.settledAmount ?? 0, language)}</dd>
        </div>
      </dl>
    </section>
  )
}

function Waiting({ data: { approvalsWaiting } }: Part) {
  const words = useWords()
  const language = useLanguage()
  if (!approvalsWaiting || approvalsWaiting.totalCount === 0) return null
  return (
    <section className="card">
      <h2>{words.home.waiting(approvalsWaiting.totalCount)}</h2>
      <ul className="rows">
        {approvalsWaiting.nodes.map((one) => (
          <li key={one.id}>
            <div>{waitingName(one, words)}</div>
            <strong className="number">{waitingAmount(one, (amount) => formatXof(amount, language))}</strong>
          </li>
        ))}
      </ul>
    </section>
  )
}

type WaitingOne = NonNullable<HomeQuery['approvalsWaiting']>['nodes'][number]

function waitingName(one: WaitingOne, words: ReturnType<typeof useWords>): string {
  switch (one.__typename) {
    case 'Payout':
      return words.home.payoutTo(one.beneficiaryName ?? formatPhone(one.destinationPhone))
    case 'Batch':
      return words.home.batchOf(one.title ?? '', one.recipientCount)
    case 'DepositApproval':
      return words.home.depositTo(formatPhone(one.transaction.customerPhone))
    case 'SettingsChange':
      return words.home.settingsChange
  }
}

function waitingAmount(one: WaitingOne, write: (amount: number) => string): string {
  switch (one.__typename) {
    case 'Payout':
      return write(one.amount)
    case 'Batch':
      return write(one.totalAmount)
    case 'DepositApproval':
      return write(one.transaction.amount)
    case 'SettingsChange':
      return ''
  }
}

function Month({ data: { month } }: Part) {
  const words = useWords()
  const language = useLanguage()
  if (!month || month.total.count === 0) return null
  const { successRate, settledAmount } = month.total
  return (
    <section className="card">
      <h2>{words.home.month}</h2>
      <p className="sum small">{formatXof(settledAmount, language)}</p>
      {successRate !== null && (
        <p className="soft">{words.home.success(formatShare(successRate, language))}</p>
      )}
      <MonthChart days={month.buckets} />
    </section>
  )
}

function Operators({ data: { operators } }: Part) {
  const words = useWords()
  const language = useLanguage()
  const troubled = (operators ?? []).filter(
    ({ collect, disburse }) => collect !== 'OPERATIONAL' || disburse !== 'OPERATIONAL',
  )
  return (
    <section className="card">
      <h2>{words.home.operators}</h2>
      {troubled.length === 0 ? (
        <p className="soft">{words.home.operatorsWork}</p>
      ) : (
        <ul className="rows">
          {troubled.map(({ paymentMethod, collect, disburse, since }) => (
            <li key={paymentMethod}>
              <div>
                <strong>{paymentMethod}</strong>
                <p className="soft">{words.home.since(formatMoment(since, language))}</p>
              </div>
              <p className="problem">{words.home.health(words.healths[collect], words.healths[disburse])}</p>
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

function LastPayments({ data: { transactions } }: Part) {
  const words = useWords()
  const isLive = useIsLive()
  const payments = transactions?.nodes ?? []
  return (
    <section className="card wide">
      <h2>
        {words.home.last}
        <span className={`live ${isLive ? 'on' : 'off'}`} role="status">
          {isLive ? words.home.live : words.home.offline}
        </span>
      </h2>
      {payments.length === 0 ? (
        <FirstSteps />
      ) : (
        <ul className="rows">
          {payments.map((payment) => (
            <PaymentRow key={payment.id} payment={payment} />
          ))}
        </ul>
      )}
    </section>
  )
}

/** The first steps of an account without any payment. */
function FirstSteps() {
  const words = useWords()
  return (
    <>
      <p>{words.home.empty}</p>
      <ul className="steps">
        {(mode === 'sandbox' ? words.home.firstStepsSandbox : words.home.firstSteps).map((step) => (
          <li key={step}>{step}</li>
        ))}
      </ul>
    </>
  )
}
