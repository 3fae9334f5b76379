import { sqlFunction, sqlType } from '../../database/sql-function.ts'
import type { Pool } from 'pg'
import { asPlatform } from '../../database/as-platform.ts'
import type { Services } from '../../context.ts'
import { type BegunRow, begunRequest, type OpenRequest } from '../../requests/open-request.ts'
import { limits } from '../../shared/limits.ts'
import type { Provider } from '../../shared/providers.ts'
import { sendBegun, sendDeadline } from '../../requests/send.ts'

/** The most payouts that one process sends to one operator at a time. */
const payoutsInFlightMax = 32

/**
 * The time, in ms, to wait for more free slots, so that one statement fills several of them. If more payouts
 * are probably due and half of the slots are free, there is no wait.
 */
const payoutsPaceMs = 20

/**
 * Begins the due payouts of an operator and sends them, at most `payoutsInFlightMax` at a time. Begins
 * nothing while the operator is known to be down or the service is ending. If a payout has begun but was not
 * sent, `requests/check.ts` asks the operator about it and sends it again under the same identity.
 */
export function sendDuePayouts(services: Services, provider: Provider): Promise<void> {
  return services.drains.payouts.run(provider, (run) => {
    /** Whether the last statement began as many payouts to send as there were free slots. */
    let isFull = false
    const onSent = () => {
      if (isFull && run.underWay <= payoutsInFlightMax / 2) run.notify()
      else run.notify(payoutsPaceMs)
    }
    return async () => {
      const room = payoutsInFlightMax - run.underWay
      const requests = await beginDue(services, provider, room)
      isFull = requests.sends.length === room
      for (const request of requests.sends) run.begin(sendBegun(services, request, requests.deadline), onSent)
      return requests.ended > 0
    }
  })
}

interface Begun {
  /** Requests to send now; each belongs to this process alone. */
  sends: OpenRequest[]
  /**
   * Number of due payouts that are not sent, because the balance does not cover them, or because their
   * operator executed them before a restore.
   */
  ended: number
  deadline: Date
}

interface PayoutRow extends BegunRow {
  /** `asked`: the operator executed the payout before a restore, so the service only asks about it. */
  outcome: 'begun' | 'short' | 'asked'
  payoutId: bigint
  request: OpenRequest['request']
}

async function beginDue(services: Services, provider: Provider, take: number): Promise<Begun> {
  const operator = services.operators.find(provider)
  if (take === 0 || !operator?.canStart('disburse', 'background').ok)
    return { sends: [], ended: 0, deadline: services.clock.now() }
  // Compute the deadline before the database sets the fence, so that nothing is sent after the fence has
  // ended.
  const deadline = sendDeadline(operator, 'disburse')
  const rows = await begin(asPlatform(services, 'a job works for all merchants').pool, provider, take)
  const begun = rows.filter(({ outcome }) => outcome === 'begun')
  return {
    sends: begun.map((row) => {
      const { payoutId: subjectId, request } = row
      return begunRequest(row, { subject: 'payout', subjectId, provider, request })
    }),
    ended: rows.length - begun.length,
    deadline,
  }
}

async function begin(pool: Pool, operator: Provider, take: number): Promise<PayoutRow[]> {
  const terms = { fenceMs: limits.operatorFenceMs, firstCheckMs: limits.firstCheckMs }
  const rows = await beginPayouts(pool, { operator, take, ...terms })
  return rows as PayoutRow[]
}

/** Begins payouts that are due; see begin_payouts.sql. */
export const beginPayouts = sqlFunction('begin_payouts', {
  takes: { operator: 'provider', take: 'int', fenceMs: 'bigint', firstCheckMs: 'bigint' },
  gives: {
    outcome: sqlType<PayoutRow['outcome']>('text'),
    payoutId: 'bigint',
    requestId: 'bigint?',
    correlationId: 'uuid?',
    merchantId: 'int',
    amount: 'bigint',
    phone: 'text',
    request: sqlType<PayoutRow['request']>('jsonb'),
    createdAt: 'timestamptz',
  },
})
