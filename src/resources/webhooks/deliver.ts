import type { Services } from '../../context.ts'
import type { EventType } from '../../events/catalogue.ts'
import type { Run } from '../../jobs/drain.ts'
import { limits } from '../../shared/limits.ts'
import type { SendResult } from '../../shared/sender.ts'
import { type AttemptLog, openAttemptLog, type EndpointState } from './attempt-log.ts'
import { eventIdText, webhookBody } from './payload.ts'
import { decryptWebhookSecret } from './secrets.ts'
import { signedHeaders, type SigningSecrets } from './sign.ts'
import { sqlFunction } from '../../database/sql-function.ts'

/** Ends a look at a lane, and says whether more is due now. */
const rescheduleEndpoint = sqlFunction('reschedule_endpoint', {
  takes: { endpoint: 'int' },
  gives: 'boolean',
})

/** Failures in a row after which an endpoint is only probed (decisions: Deliveries; SQL says so too). */
const webhookProbeFrom = 5

/** What a lane took before is looked at again: its endpoint may have been changed or removed. */
const webhookLookMs = 1_000

/** A lane lets others have its place after this time. */
const endpointTurnMs = 10_000

/**
 * Sends an endpoint what is due, one after another in the order of the log, until nothing is. Of all
 * processes one at a time does. From the fifth failure in a row on only the oldest delivery is tried, at its
 * time. A process that dies may have sent what is not noted: it is sent again, under the same id.
 */
export function deliverDue(services: Services, endpointId: number): Promise<void> {
  return services.drains.webhooks.run(endpointId, (run) => {
    const begun = performance.now()
    const attempts = openAttemptLog(services, endpointId)
    return async () => (await sendDue(services, endpointId, { run, attempts })) && keepsTurn(services, begun)
  })
}

/** Where others wait for a place, a lane that had one for long gives it up. */
function keepsTurn({ drains }: Services, begun: number): boolean {
  return drains.webhooks.size < limits.endpointQueuesMax || performance.now() - begun <= endpointTurnMs
}

interface EndpointQueue {
  run: Run
  attempts: AttemptLog
}

/** @returns whether more is due now */
async function sendDue(services: Services, endpointId: number, queue: EndpointQueue): Promise<boolean> {
  const { run, attempts } = queue
  const target = await readTarget(services, endpointId)
  run.isFailing = target !== null && target.failureCount > 0
  // It stays due: it is enqueued again where there is room.
  if (run.isFailing && services.drains.webhooks.failing > limits.failingEndpointQueuesMax) return false
  const due = target ? await takeDue(services, endpointId, target.failureCount) : []
  const isWhole = target !== null && (await sendAll(services, target, due, queue))
  await attempts.flush()
  if (run.isOver) return false
  if (isWhole && due.length === limits.webhookTakeMax) return true
  return rescheduleEndpoint(services.leases.pool, { endpoint: endpointId })
}

/**
 * What is changed or removed meanwhile gets nothing of a long row that was read before.
 * @returns false where the endpoint is to be looked at again before anything further is sent
 */
async function sendAll(
  services: Services,
  target: Target,
  due: readonly Due[],
  { run, attempts }: EndpointQueue,
): Promise<boolean> {
  const begun = performance.now()
  for (const delivery of due) {
    if (run.isOver || performance.now() - begun > webhookLookMs) return false
    const at = services.clock.now()
    const result = await send(services, target, delivery, run.stop)
    // It says nothing of the receiver.
    if (result.error === 'aborted') return false
    const { id, count } = delivery
    if (result.isDelivered) {
      await attempts.add({ id, count, at, result, waitMs: null })
    } else {
      const waitMs = waitAfter(services.config.deliveries.retryScheduleS, count, result)
      const state = await attempts.flush({ id, count, at, result, waitMs })
      if (!goesOn(state, result)) return false
    }
  }
  return true
}

function goesOn({ isActive, failureCount }: EndpointState, { retryAfterMs }: SendResult): boolean {
  return isActive && failureCount < webhookProbeFrom && retryAfterMs === undefined
}

/** Until the next attempt; null where there is none. A tenth of chance: retries come in no waves. */
function waitAfter(scheduleS: readonly number[], count: number, result: SendResult): number | null {
  const waitS = scheduleS[count]
  if (waitS === undefined || result.statusCode === gone) return null
  const waitMs = waitS * 1_000 * (0.9 + Math.random() * 0.2)
  return Math.round(Math.max(waitMs, result.retryAfterMs ?? 0))
}

/** The receiver wants this event no more. */
const gone = 410

function send(services: Services, target: Target, delivery: Due, stop: AbortSignal): Promise<SendResult> {
  const { merchantId, url, secrets } = target
  const { type, data, occurredAt, position } = delivery
  const id = eventIdText(delivery.eventId)
  const body = webhookBody({ id, type, data, occurredAt, merchantId, position })
  const headers = signedHeaders({ id, type }, body, secrets, new Date())
  return services.webhookSender.send({ url, headers, body }, stop)
}

/** Where a lane leads. */
interface Target {
  merchantId: number
  url: string
  failureCount: number
  secrets: SigningSecrets
}

/** @returns null where nothing may be sent now: it is not active, gone, or asked to be left alone */
async function readTarget(services: Services, id: number): Promise<Target | null> {
  const { rows } = await services.leases.pool.query<
    Omit<Target, 'secrets'> & { encrypted: Buffer; previous: Buffer | null }
  >({
    name: 'endpoint_target',
    text: `SELECT merchant_id AS "merchantId", url, failure_count AS "failureCount",
      secret_encrypted AS encrypted,
        CASE WHEN previous_secret_until > service_now() THEN previous_secret_encrypted END AS previous
      FROM webhook_endpoint
      WHERE id = $1 AND is_active AND slot IS NOT NULL
        AND (paused_until IS NULL OR paused_until <= service_now())`,
    values: [id],
  })
  const [row] = rows
  if (!row) return null
  const { encrypted, previous, ...target } = row
  const open = (bytes: Buffer) =>
    decryptWebhookSecret(services.access.master, { merchantId: row.merchantId, id }, bytes)
  return { ...target, secrets: { secret: open(encrypted), previous: previous && open(previous) } }
}

/** A delivery that is due, and its event. */
interface Due {
  id: bigint
  /** Attempts of its present run. */
  count: number
  type: EventType
  position: bigint
  eventId: bigint
  data: object
  occurredAt: Date
}

/** What is due of an endpoint, in the order of the log; of one that keeps failing the oldest, where it is. */
async function takeDue({ leases }: Services, endpointId: number, failures: number): Promise<Due[]> {
  const isProbing = failures >= webhookProbeFrom
  const { rows } = await leases.pool.query<Due>({
    name: isProbing ? 'take_probe' : 'take_due',
    text: isProbing ? takeText(oldest, '$2') : takeText(dueNow, '$2'),
    values: [endpointId, isProbing ? 1 : limits.webhookTakeMax],
  })
  return rows
}

const pending = `SELECT * FROM webhook_delivery WHERE endpoint_id = $1 AND status = 'pending'`
// A statement for each index: what is due at once, and what waits, by its time or in order.
const dueNow = `
  (${pending} AND next_attempt_at IS NULL ORDER BY position LIMIT $2)
  UNION ALL
  (${pending} AND next_attempt_at <= service_now() ORDER BY next_attempt_at LIMIT $2)`
const oldest = `
  (${pending} AND next_attempt_at IS NULL ORDER BY position LIMIT 1)
  UNION ALL
  (${pending} AND next_attempt_at IS NOT NULL ORDER BY position LIMIT 1)`

function takeText(from: string, take: string): string {
  return `SELECT d.id, d.attempt_count AS count, d.type, d.position, e.id AS "eventId", e.data,
      e.created_at AS "occurredAt"
    FROM (SELECT * FROM (${from}) AS either ORDER BY position LIMIT ${take}) AS d
    JOIN LATERAL (
      SELECT * FROM event v WHERE v.merchant_id = d.merchant_id AND v.position = d.position LIMIT 1
    ) AS e ON true
    WHERE d.next_attempt_at IS NULL OR d.next_attempt_at <= service_now()
    ORDER BY d.position`
}
