import { z } from 'zod'
import { actorOf } from '../../identity/callers/actor.ts'
import { recordingOf, recordMade } from '../../audit/audit-log.ts'
import type { Context } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { transact } from '../../database/transact.ts'
import { type EventType, events } from '../../events/catalogue.ts'
import { invalidInput, oneOf, readInput } from '../../shared/input.ts'
import { limits } from '../../shared/limits.ts'
import type { Secret } from '../../shared/secret.ts'
import { webAddress } from '../../shared/web-address.ts'
import { checkWebhookUrl } from './address.ts'
import { noSuchWebhook } from './find.ts'
import { decryptWebhookSecret, encryptWebhookSecret } from './secrets.ts'
import { newWebhookSecret } from './sign.ts'
import { sqlFunction } from '../../database/sql-function.ts'

/** The reason to write without row-level security. */
const reason = 'the SQL function receives the id of the merchant'

const insertWebhook = sqlFunction('register_webhook', {
  takes: {
    merchant: 'int',
    endpoint: 'int',
    address: 'text',
    names: 'text[]',
    encrypted: 'bytea',
    operationId: 'text?',
    slots: 'int',
  },
  gives: { id: 'int?', secretEncrypted: 'bytea?' },
})

/** The types of events that an endpoint gets: names of the catalogue, each once. */
const eventNames = z
  .array(oneOf(Object.keys(events) as EventType[]), {
    error: ({ input }) => (input == null ? 'is required' : 'must be a list of names of events'),
  })
  .min(1, 'must name at least one event')
  .transform((names) => [...new Set(names)])

export const webhookFields = { url: webAddress, events: eventNames }
export const registerWebhookInput = z.object(webhookFields)
type RegisterWebhookInput = z.input<typeof registerWebhookInput>

/** An endpoint with its signing secret, which is shown only when it is made. */
export interface WebhookWithSecret {
  id: number
  secret: Secret
}

/**
 * Registers an address that events are sent to. If two requests want the last free of the five slots, the
 * database decides which one gets it.
 * @param raw.url checked now with all addresses that it resolves to, and again at each delivery
 * @returns the endpoint with its secret; a repetition under the same `Idempotency-Key` gets the same one
 * @throws DomainError INVALID_INPUT
 * @see docs/design/rules.md#webhook-endpoints
 */
export async function registerWebhook(ctx: Context, raw: RegisterWebhookInput): Promise<WebhookWithSecret> {
  const input = readInput(registerWebhookInput, raw)
  const { merchantId } = actorOf(ctx)
  const url = await checkWebhookUrl(input.url, ctx.config)
  const { pool } = asPlatform(ctx, reason)
  const { master } = ctx.access
  // The secret is encrypted for its own row, so the id of the row is needed first.
  const drawn = await pool.query<{ id: number }>("SELECT nextval('webhook_endpoint_id_seq')::int AS id")
  const id = drawn.rows[0]?.id ?? -1
  const encrypted = encryptWebhookSecret(master, { merchantId, id }, newWebhookSecret())
  const operationId = ctx.idempotentOperation?.id ?? null
  const made = await transact(asPlatform(ctx, reason), async (tx) => {
    const [row] = await insertWebhook(tx, {
      merchant: merchantId,
      endpoint: id,
      address: url,
      names: input.events,
      encrypted,
      operationId,
      slots: limits.webhooksPerMerchantMax,
    })
    if (row?.id === id) await recordMade(tx, recordingOf(ctx, 'registerWebhook'), ['webhook', id])
    return row
  })
  // A resumed request: the endpoint that it made before was removed meanwhile.
  if (!made) throw noSuchWebhook()
  if (made.id === null || made.secretEncrypted === null) throw tooMany()
  return {
    id: made.id,
    secret: decryptWebhookSecret(master, { merchantId, id: made.id }, made.secretEncrypted),
  }
}

function tooMany(): Error {
  const message = `exceeds the limit of ${limits.webhooksPerMerchantMax} webhook endpoints per merchant`
  return invalidInput([{ field: 'url', message }])
}
