import { z } from 'zod'
import { actorOf } from '../../identity/actor.ts'
import { recordingOf, recordMade } from '../../audit/audit-log.ts'
import type { Context } from '../../context.ts'
import { asPlatform } from '../../database/as-platform.ts'
import { transact } from '../../database/transact.ts'
import { type EventType, events } from '../../events/catalogue.ts'
import { invalidInput, oneOf, readInput, webAddress } from '../../shared/input.ts'
import { limits } from '../../shared/limits.ts'
import type { Secret } from '../../shared/secret.ts'
import { checkWebhookUrl } from './address.ts'
import { noSuchWebhook } from './find.ts'
import { decryptWebhookSecret, encryptWebhookSecret } from './secrets.ts'
import { newWebhookSecret } from './sign.ts'
import { sqlFunction } from '../../database/sql-function.ts'

/** Why this looks past row-level security. */
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

/** What an endpoint is told of: names of the catalogue, each once. */
const eventNames = z
  .array(oneOf(Object.keys(events) as EventType[]), {
    error: ({ input }) => (input == null ? 'is required' : 'must be a list of names of events'),
  })
  .min(1, 'must name at least one event')
  .transform((names) => [...new Set(names)])

export const webhookFields = { url: webAddress, events: eventNames }
export const registerWebhookInput = z.object(webhookFields)
type RegisterWebhookInput = z.input<typeof registerWebhookInput>

/** An endpoint, and the secret that its deliveries are signed with: shown where it is made, never again. */
export interface WebhookWithSecret {
  id: number
  secret: Secret
}

/**
 * Registers an address that events are sent to. The database decides who gets the last of five places.
 * @param raw.url judged by all that it leads to now, and again at each delivery
 * @returns the secret too; begun again under its `Idempotency-Key`, the same one
 * @throws DomainError INVALID_INPUT
 * @see specification: Webhooks; decisions: Endpoints
 */
export async function registerWebhook(ctx: Context, raw: RegisterWebhookInput): Promise<WebhookWithSecret> {
  const input = readInput(registerWebhookInput, raw)
  const { merchantId } = actorOf(ctx)
  const url = await checkWebhookUrl(input.url, ctx.config)
  const { pool } = asPlatform(ctx, reason)
  const { master } = ctx.access
  // Its secret is sealed for its own row, so the row's id comes first.
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
  // Begun again, after what it had made was removed.
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
