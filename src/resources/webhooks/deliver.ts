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

/** Stores when the next delivery of an endpoint is due. @returns whether one is due already */
const rescheduleEndpoint = sqlFunction('reschedule_endpoint', {
  takes: { endpoint: 'int' },
  gives: 'boolean',
})

/**
 * Failures in a row after which an endpoint is only probed (see docs/design/events.md#deliveries). The SQL
 * functions contain the same number.
 */
const webhookProbeFrom = 5

/**
 * The time after which the service sends no more from one list of deliveries. It then reads the endpoint
 * again, because the endpoint may have been changed or removed.
 */
const webhookLookMs = 1_000

/** Time after which a queue leaves its slot to other queues that wait. */
const endpointTurnMs = 10_000

/**
 * Sends the due events of an endpoint one by one, in the order of the log, until no more are due. Only one
 * process at a time does this for an endpoint. After five failures in a row, only the oldest delivery is
 * tried, when it is due. If a process dies after it sent an event and before it recorded this, the event is
 * sent again, under the same id.
 */
export function deliverDue(services: Services, endpointId: number): Promise<void> {
  return services.drains.webhooks.run(endpointId, (run) => {
    const begun = performance.now()
    const attempts = openAttemptLog(services, endpointId)
    return async () => (await sendDue(services, endpointId, { run, attempts })) && keepsTurn(services, begun)
  })
}

/** Whether the queue may keep its slot: always if others are free, else for `endpointTurnMs`. */
function keepsTurn({ drains }: Services, begun: number): boolean {
  return drains.webhooks.size < limits.endpointQueuesMax || performance.now() - begun <= endpointTurnMs
}

interface EndpointQueue {
  run: Run
  attempts: AttemptLog
}

/** Takes due deliveries and sends them. @returns whether more are due now */
async function sendDue(services: Services, endpointId: number, queue: EndpointQueue): Promise<boolean> {
  const { run, attempts } = queue
  const target = await readTarget(services, endpointId)
  run.isFailing = target !== null && target.failureCount > 0
  // If too many failing endpoints have a queue now, this one stays due: a later run of the job enqueues it.
  if (run.isFailing && services.drains.webhooks.failing > limits.failingEndpointQueuesMax) return false
  const due = target ? await takeDue(services, endpointId, target.failureCount) : []
  const isWhole = target !== null && (await sendAll(services, target, due, queue))
  await attempts.flush()
  if (run.isOver) return false
  if (isWhole && due.length === limits.webhookTakeMax) return true
  return rescheduleEndpoint(services.leases.pool, { endpoint: endpointId })
}

/**
 * Sends the deliveries in order. Stops after a second, so that a changed or removed endpoint does not get all
 * of a long list that was read before the change.
 * @returns false where the endpoint must be read again before the next event is sent
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
    // The service stopped this request itself: the attempt says nothing about the receiver.
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

/**
 * Computes the ms until the next attempt; null where there is none. A random change of up to ten percent
 * keeps retries from coming in waves.
 */
function waitAfter(scheduleS: readonly number[], count: number, result: SendResult): number | null {
  const waitS = scheduleS[count]
  if (waitS === undefined || result.statusCode === gone) return null
  const waitMs = waitS * 1_000 * (0.9 + Math.random() * 0.2)
  return Math.round(Math.max(waitMs, result.retryAfterMs ?? 0))
}

/** Status code of a receiver that no longer wants this event. */
const gone = 410

function send(services: Services, target: Target, delivery: Due, stop: AbortSignal): Promise<SendResult> {
  const { merchantId, url, secrets } = target
  const { type, data, occurredAt, position } = delivery
  const id = eventIdText(delivery.eventId)
  const body = webhookBody({ id, type, data, occurredAt, merchantId, position })
  const headers = signedHeaders({ id, type }, body, secrets, new Date())
  return services.webhookSender.send({ url, headers, body }, stop)
}

/** The endpoint that events are sent to. */
interface Target {
  merchantId: number
  url: string
  failureCount: number
  secrets: SigningSecrets
}

/**
 * Reads the endpoint and its secrets.
 * @returns null where nothing may be sent now: it is inactive, removed, or its receiver asked to wait
 */
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
  /** Attempts since the delivery was created, or was last resumed or replayed. */
  count: number
  type: EventType
  position: bigint
  eventId: bigint
  data: object
  occurredAt: Date
}

/**
 * Reads the due deliveries of an endpoint in the order of the log. After five failures in a row, it reads
 * only the oldest pending delivery, and only if that one is due.
 */
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
// Each part of a UNION reads one index: that of new deliveries, or those of retries by time and by position.
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
