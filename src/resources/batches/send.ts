import type { Services } from '../../context.ts'
import type { OpenRequest } from '../../operators/requests.ts'
import { limits } from '../../shared/limits.ts'
import type { Provider } from '../../shared/providers.ts'
import { type BegunRow, begunRequest, sendBegun, sendDeadline } from '../sending.ts'

/** Recipients that one process sends to one operator at a time. */
const recipientsInFlightMax = 32

/** Answers that wait to be noted before further recipients are sent. */
const recipientsUnnotedMax = 512

/** The lane of bulk pay; the others have the ids of webhook endpoints, from 1 on. */
const bulkLane = 0

/** Who sends recipients here, and is told where there may be more. */
const underWayHere = new WeakMap<Services['flights'], Sending>()

interface Sending {
  look: () => void
}

/**
 * Sends the recipients of all batches under way, until nothing is due and nothing under way: of one batch
 * `limits.batchInFlightMax` at a time, of one operator `recipientsInFlightMax`, of all merchants in
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

/** A recipient that was taken, to be sent before its deadline. */
interface Begun {
  batchId: number
  request: OpenRequest
  deadline: Date
}

async function sendWhileHeld(services: Services, sending: Sending, lost: AbortSignal): Promise<void> {
  const over = AbortSignal.any([lost, services.ending])
  let look = true
  let resume = () => {}
  const wake = () => {
    look = true
    resume()
  }
  sending.look = wake
  over.addEventListener('abort', wake, { once: true })
  /** Whose operator has not answered. */
  const calls = new Set<Begun>()
  /** Whose answer is not noted; those as well. */
  const unnoted = new Set<bigint>()
  const send = (begun: Begun) => {
    calls.add(begun)
    unnoted.add(begun.request.id)
    const onAnswered = () => void (calls.delete(begun) && wake())
    void sendBegun(services, begun.request, begun.deadline, onAnswered).finally(() => {
      onAnswered()
      unnoted.delete(begun.request.id)
      if (unnoted.size === 0 || unnoted.size === recipientsUnnotedMax / 2) wake()
    })
  }
  try {
    while (look && !over.aborted) {
      look = false
      if (unnoted.size <= recipientsUnnotedMax)
        for (const begun of await beginDue(services, calls, unnoted)) {
          // It is only asked about, and leaves its place to the next one.
          if (begun === 'orphan') look = true
          else send(begun)
        }
      if (!look && unnoted.size > 0) await new Promise<void>((resolve) => (resume = resolve))
    }
  } finally {
    over.removeEventListener('abort', wake)
  }
}

interface RecipientRow extends BegunRow {
  recipientId: bigint
  batchId: number
  provider: Provider
  /** The operator executed it before a restore: it is only asked about. */
  isOrphan: boolean
}

async function beginDue(
  services: Services,
  calls: ReadonlySet<Begun>,
  unnoted: ReadonlySet<bigint>,
): Promise<(Begun | 'orphan')[]> {
  const busy = [...calls].map(({ batchId, request: { provider } }) => ({ batchId, provider }))
  const open = services.operators.list().flatMap(({ provider }) => {
    const operator = services.operators.find(provider)
    const room = recipientsInFlightMax - busy.filter((call) => call.provider === provider).length
    if (!operator || room <= 0 || !operator.canStart('disburse', 'background').ok) return []
    // From before the right to send is taken: nothing may leave after the fence.
    return [{ provider, room, deadline: sendDeadline(operator, 'disburse') }]
  })
  if (open.length === 0) return []
  const { rows } = await services.database.pool.query<RecipientRow>({
    name: 'begin_recipients',
    text: `SELECT recipient_id AS "recipientId", batch_id AS "batchId", merchant_id AS "merchantId",
        operator AS provider, request_id AS "requestId", correlation_id AS "correlationId", amount, phone,
        is_orphan AS "isOrphan"
      FROM begin_recipients($1::provider[], $2, $3, $4::provider[], $5, $6, $7, $8, $9)`,
    values: [
      open.map(({ provider }) => provider),
      open.map(({ room }) => room),
      busy.map(({ batchId }) => batchId),
      busy.map(({ provider }) => provider),
      limits.batchInFlightMax,
      limits.operatorFenceMs,
      limits.firstCheckMs,
      [...unnoted],
      limits.disburseSyncDeadlineMs,
    ],
  })
  const deadlines = new Map(open.map(({ provider, deadline }) => [provider, deadline]))
  return rows.flatMap((row): (Begun | 'orphan')[] => {
    if (row.isOrphan) return ['orphan']
    const { recipientId: subjectId, batchId, provider } = row
    const request = begunRequest(row, { subject: 'recipient', subjectId, provider, request: {} })
    const deadline = deadlines.get(provider)
    return deadline ? [{ batchId, request, deadline }] : []
  })
}
