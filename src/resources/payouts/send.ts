import { sqlFunction, sqlType } from '../../database/sql-function.ts'
import type { Pool } from 'pg'
import { asPlatform } from '../../database/as-platform.ts'
import type { Services } from '../../context.ts'
import { type BegunRow, begunRequest, type OpenRequest } from '../../requests/open-request.ts'
import { limits } from '../../shared/limits.ts'
import type { Provider } from '../../shared/providers.ts'
import { sendBegun, sendDeadline } from '../../requests/send.ts'

/** Payouts that one process sends to one operator at a time. */
const payoutsInFlightMax = 32

/** Places that become free within this time are filled by one statement, unless half of them are. */
const payoutsPaceMs = 20

/**
 * Begins the payouts of an operator that are due and sends them, `payoutsInFlightMax` at a time.
 * Begins nothing while the operator is known to be down or the service ends; what was begun and is not sent
 * is asked about (`requests/check.ts`), and sent again under the same identity.
 */
export function sendDuePayouts(services: Services, provider: Provider): Promise<void> {
  return services.drains.payouts.run(provider, (run) => {
    /** Whether the last look took all that it might. */
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
  /** To be sent now, each by whoever took it. */
  sends: OpenRequest[]
  /** How many were due and are not sent: not covered, or executed by their operator before a restore. */
  ended: number
  deadline: Date
}

interface PayoutRow extends BegunRow {
  /** `asked`: the operator executed it before a restore, so that it is only asked about. */
  outcome: 'begun' | 'short' | 'asked'
  payoutId: bigint
  request: OpenRequest['request']
}

async function beginDue(services: Services, provider: Provider, take: number): Promise<Begun> {
  const operator = services.operators.find(provider)
  if (take === 0 || !operator?.canStart('disburse', 'background').ok)
    return { sends: [], ended: 0, deadline: services.clock.now() }
  // From before the right to send is taken: nothing may leave after the fence.
  const deadline = sendDeadline(operator, 'disburse')
  const rows = await begin(asPlatform(services, 'a job works for all merchants').pool, provider, take)
  if (rows.length > 0) services.sequencer.notify()
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

/** Takes payouts that are due; see begin_payouts.sql. */
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
