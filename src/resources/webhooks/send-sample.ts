import { recordChange, recordingOf } from '../../audit/audit-log.ts'
import type { Context } from '../../context.ts'
import { singleFlight } from '../../shared/single-flight.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { transact } from '../../database/transact.ts'
import { DomainError } from '../../shared/errors.ts'
import type { SendResult } from '../../shared/sender.ts'
import { findWebhook, noSuchWebhook } from './find.ts'
import { webhookBody } from './payload.ts'
import { decryptWebhookSecret } from './secrets.ts'
import { signedHeaders } from './sign.ts'
import { sqlFunction } from '../../database/sql-function.ts'

/** The reason to work without row-level security. */
const reason = 'no merchant may read a secret; the SQL function receives the id of the merchant'

const recordTest = sqlFunction('record_webhook_test', {
  takes: {
    merchant: 'int',
    endpoint: 'int',
    delivery: 'bigint',
    sentAt: 'timestamptz',
    delivered: 'boolean',
    statusCode: 'int?',
    error: 'text?',
    durationMs: 'int',
    answer: 'text?',
    address: 'text?',
  },
  gives: 'void',
})

/** The result of a sample event. */
export interface Sample extends Pick<SendResult, 'isDelivered' | 'statusCode' | 'durationMs'> {
  deliveryId: bigint
}

/**
 * Sends the sample event `test` to an endpoint, active or not, and records the result as a delivery. Unlike
 * other deliveries, it does not change the endpoint's count of failures. Calls that come while a sample is
 * under way share its result.
 * @throws DomainError NOT_FOUND, OVERLOADED where the service ends before the receiver answers
 * @see docs/design/rules.md#webhook-endpoints
 */
export async function sendSample(ctx: Context, webhookId: number): Promise<Sample> {
  const webhook = await findWebhook(ctx, webhookId)
  return singleFlight(ctx, `webhook-test:${webhook.id}`, () => sendNow(ctx, webhook))
}

interface Target {
  url: string
  encrypted: Buffer
  previous: Buffer | null
  deliveryId: bigint
  at: Date
}

async function sendNow(ctx: Context, webhook: { id: number; merchantId: number }): Promise<Sample> {
  const { merchantId, id } = webhook
  const { pool } = asPlatform(ctx, reason)
  const { rows } = await pool.query<Target>({
    name: 'webhook_test_target',
    text: `SELECT url, secret_encrypted AS encrypted,
        CASE WHEN previous_secret_until > service_now() THEN previous_secret_encrypted END AS previous,
        nextval('webhook_delivery_id_seq') AS "deliveryId", service_now() AS at
      FROM webhook_endpoint WHERE id = $1 AND merchant_id = $2 AND removed_at IS NULL`,
    values: [id, merchantId],
  })
  const [target] = rows
  if (!target) throw noSuchWebhook()
  const { url, deliveryId } = target
  const open = (encrypted: Buffer) => decryptWebhookSecret(ctx.access.master, webhook, encrypted)
  const secrets = { secret: open(target.encrypted), previous: target.previous && open(target.previous) }
  const event = { id: `evt_test_${deliveryId}`, type: 'test' } as const
  const data = { webhook_id: id, message: 'This is a sample: nothing has happened.' }
  const body = webhookBody({ ...event, data, merchantId, position: null, occurredAt: target.at })
  const headers = signedHeaders(event, body, secrets, new Date())
  const result = await ctx.webhookSender.send({ url, headers, body }, ctx.ending)
  if (result.error === 'aborted') throw new DomainError('OVERLOADED')
  await transact(asPlatform(ctx, reason), async (tx) => {
    await recordTest(tx, {
      merchant: merchantId,
      endpoint: id,
      delivery: deliveryId,
      sentAt: target.at,
      delivered: result.isDelivered,
      statusCode: result.statusCode,
      error: result.error,
      durationMs: result.durationMs,
      answer: result.answer,
      address: result.address,
    })
    const change = { target: ['webhook', id], after: { delivery_id: Number(deliveryId) } } as const
    await recordChange(tx, recordingOf(ctx, 'sendTestEvent'), change)
  })
  const { isDelivered, statusCode, durationMs } = result
  return { isDelivered, statusCode, durationMs, deliveryId }
}
