import { sqlFunction } from '../../database/sql-function.ts'
import { asPlatform } from '../../database/as-platform.ts'
import type { Services } from '../../context.ts'
import { bulkQueue } from '../../jobs/drain.ts'
import { begunRequest, type OpenRequest } from '../../requests/open-request.ts'
import { limits } from '../../shared/limits.ts'
import { sendBegun, sendDeadline } from '../../requests/send.ts'

/** The number of recipients that one process sends to one operator at the same time. */
const recipientsInFlightMax = 32

/** While more requests than this have no recorded outcome, no further recipients are sent. */
const recipientsPendingMax = 512

/**
 * Sends the recipients of all processing batches: at most `limits.batchInFlightMax` of one batch and
 * `recipientsInFlightMax` of one operator at the same time. Merchants take turns. One process at a time runs
 * this function, so that the bounds hold for all processes together. Recipients of an operator that is down
 * stay `pending`. If this process dies, another one asks the operators about the requests that it began
 * (`requests/check.ts`) and, if necessary, sends them again under the same identity.
 */
export function sendDueRecipients(services: Services): Promise<void> {
  return services.drains.batches.run(bulkQueue, (run) => {
    /** Calls that the operator has not answered. */
    const calls = new Set<Begun>()
    /** Requests without a recorded outcome; includes those of `calls`. */
    const pending = new Set<bigint>()
    const send = (begun: Begun) => {
      calls.add(begun)
      pending.add(begun.request.id)
      const onAnswered = () => void (calls.delete(begun) && run.notify())
      const onRecorded = () => {
        onAnswered()
        pending.delete(begun.request.id)
        if (pending.size === recipientsPendingMax / 2) run.notify()
      }
      run.begin(sendBegun(services, begun.request, begun.deadline, onAnswered).finally(onRecorded))
    }
    return async () => {
      if (pending.size > recipientsPendingMax) return false
      const due = await beginDue(services, calls, pending)
      for (const begun of due) if (begun !== 'orphan') send(begun)
      // An orphan is not sent, only asked about: its slot is free for the next recipient.
      return due.includes('orphan')
    }
  })
}

/** A recipient that was taken and must be sent before its deadline. */
interface Begun {
  batchId: number
  request: OpenRequest
  deadline: Date
}

/** Takes the recipients that are next. `isOrphan`: the operator executed the payment before a restore. */
export const beginRecipients = sqlFunction('begin_recipients', {
  takes: {
    open: 'provider[]',
    rooms: 'int[]',
    busyBatches: 'int[]',
    busyOperators: 'provider[]',
    batchMax: 'int',
    fenceMs: 'bigint',
    firstCheckMs: 'bigint',
    own: 'bigint[]',
    callMs: 'bigint',
  },
  gives: {
    recipientId: 'bigint',
    batchId: 'int',
    merchantId: 'int',
    operator: 'provider',
    requestId: 'bigint',
    correlationId: 'uuid',
    amount: 'bigint',
    phone: 'text',
    createdAt: 'timestamptz',
    isOrphan: 'boolean',
  },
})

async function beginDue(
  services: Services,
  calls: ReadonlySet<Begun>,
  pending: ReadonlySet<bigint>,
): Promise<(Begun | 'orphan')[]> {
  const busy = [...calls].map(({ batchId, request: { provider } }) => ({ batchId, provider }))
  const open = services.operators.list().flatMap(({ provider }) => {
    const operator = services.operators.find(provider)
    const room = recipientsInFlightMax - busy.filter((call) => call.provider === provider).length
    if (!operator || room <= 0 || !operator.canStart('disburse', 'background').ok) return []
    // Compute the deadline before the database sets the fence: no call may be sent after the fence has ended.
    return [{ provider, room, deadline: sendDeadline(operator, 'disburse') }]
  })
  if (open.length === 0) return []
  const { pool } = asPlatform(services, 'a job works for all merchants')
  const rows = await beginRecipients(pool, {
    open: open.map(({ provider }) => provider),
    rooms: open.map(({ room }) => room),
    busyBatches: busy.map(({ batchId }) => batchId),
    busyOperators: busy.map(({ provider }) => provider),
    batchMax: limits.batchInFlightMax,
    fenceMs: limits.operatorFenceMs,
    firstCheckMs: limits.firstCheckMs,
    own: [...pending],
    callMs: limits.disburseSyncDeadlineMs,
  })
  const deadlines = new Map(open.map(({ provider, deadline }) => [provider, deadline]))
  return rows.flatMap((row): (Begun | 'orphan')[] => {
    if (row.isOrphan) return ['orphan']
    const { recipientId: subjectId, batchId, operator: provider } = row
    const request = begunRequest(row, { subject: 'recipient', subjectId, provider, request: {} })
    const deadline = deadlines.get(provider)
    return deadline ? [{ batchId, request, deadline }] : []
  })
}
