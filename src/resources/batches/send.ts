import type { Services } from '../../context.ts'
import { limits } from '../../shared/limits.ts'
import type { Provider } from '../../shared/providers.ts'
import { type BegunRow, begunRequest, sendBegun, sendDeadline } from '../sending.ts'
import { type Begun, type Lanes, openLanes } from './lanes.ts'

/** The lane of bulk pay; the others have the ids of webhook endpoints, from 1 on. */
const bulkLane = 0

/** Who sends recipients here, and is told where there may be more. */
const underWayHere = new WeakMap<Services['flights'], Sending>()

interface Sending {
  look: () => void
}

/**
 * Sends the recipients of all batches under way, until nothing is due and nothing under way: of one batch
 * `limits.batchInFlightMax` at a time, of one operator `limits.recipientsInFlightMax`, of all merchants in
 * turn. Of all processes one at a time does, so that this holds over all of them; where this one is at it
 * already it looks once more. What an operator that is down would be asked stays where it is. Whatever
 * becomes of this process: what was begun and is not sent is asked about (`resources/settlement.ts`), and
 * sent again under the same identity.
 */
export async function sendDueRecipients(services: Services): Promise<void> {
  const here = underWayHere.get(services.flights)
  if (here) return here.look()
  let again = true
  const lookAgain = () => void (again = true)
  const sending: Sending = { look: lookAgain }
  underWayHere.set(services.flights, sending)
  try {
    while (again && !services.ending.aborted) {
      again = false
      await services.laneHolds.during(bulkLane, (lost) => sendWhileHeld(services, sending, lost))
      sending.look = lookAgain
    }
  } finally {
    underWayHere.delete(services.flights)
  }
}

async function sendWhileHeld(services: Services, sending: Sending, lost: AbortSignal): Promise<void> {
  const over = AbortSignal.any([lost, services.ending])
  let look = true
  let resume = () => {}
  let pause: NodeJS.Timeout | undefined
  const wake = () => {
    clearTimeout(pause)
    pause = undefined
    look = true
    resume()
  }
  sending.look = wake
  over.addEventListener('abort', wake, { once: true })
  /** Taken and not answered when it looked last. */
  let atLook = 0
  let unnoted = 0
  const lanes = openLanes(over, (begun, onAnswered) => {
    const { request, deadline } = begun
    void sendBegun(services, request, deadline, onAnswered)
      .finally(onAnswered)
      .finally(() => {
        unnoted -= 1
        if (unnoted === 0 || unnoted === limits.recipientsUnnotedMax / 2) wake()
      })
  })
  /** Places that become free within a moment are filled by one statement. */
  lanes.onAnswered = () => {
    if (lanes.open() <= atLook / 2) wake()
    else pause ??= setTimeout(wake, limits.payoutsPaceMs)
  }
  try {
    while (look && !over.aborted) {
      look = false
      const begun = unnoted <= limits.recipientsUnnotedMax ? await beginDue(services, lanes) : []
      unnoted += begun.length
      for (const each of begun) lanes.add(each)
      atLook = lanes.open()
      if (!look && unnoted > 0) await new Promise<void>((resolve) => (resume = resolve))
    }
  } finally {
    clearTimeout(pause)
    over.removeEventListener('abort', wake)
  }
}

interface RecipientRow extends BegunRow {
  recipientId: bigint
  batchId: number
  provider: Provider
}

async function beginDue(services: Services, lanes: Lanes): Promise<Begun[]> {
  const busy = lanes.list()
  const open = services.operators.list().flatMap(({ provider }) => {
    const operator = services.operators.find(provider)
    const own = busy.filter((lane) => lane.provider === provider)
    const most: number = limits.recipientsInFlightMax
    const room = own.reduce((left, lane) => left + lane.ahead - lane.open, most)
    if (!operator || room <= 0 || !operator.canStart('disburse', 'background').ok) return []
    // From before the right to send is taken: nothing may leave after the fence.
    return [{ provider, room, deadline: sendDeadline(operator, 'disburse') }]
  })
  if (open.length === 0) return []
  const taken = busy.flatMap((lane) => Array.from({ length: lane.open }, () => lane))
  const { rows } = await services.database.pool.query<RecipientRow>({
    name: 'begin_recipients',
    text: `SELECT recipient_id AS "recipientId", batch_id AS "batchId", merchant_id AS "merchantId",
        operator AS provider, request_id AS "requestId", correlation_id AS "correlationId", amount, phone,
        created_at AS "createdAt"
      FROM begin_recipients($1::provider[], $2, $3, $4::provider[], $5, $6, $7, $8, $9::provider[], $10)`,
    values: [
      open.map(({ provider }) => provider),
      open.map(({ room }) => room),
      taken.map(({ batchId }) => batchId),
      taken.map(({ provider }) => provider),
      limits.batchInFlightMax,
      limits.operatorFenceMs,
      limits.firstCheckMs,
      busy.map(({ batchId }) => batchId),
      busy.map(({ provider }) => provider),
      busy.map(({ ahead }) => ahead),
    ],
  })
  const deadlines = new Map(open.map(({ provider, deadline }) => [provider, deadline]))
  return rows.flatMap((row) => {
    const { recipientId: subjectId, batchId, provider } = row
    const deadline = deadlines.get(provider)
    const request = begunRequest(row, { subject: 'recipient', subjectId, provider, request: {} })
    return deadline ? [{ batchId, request, deadline }] : []
  })
}
