import type { MasterSecret } from '../../identity/secrets.ts'
import { seal, unseal } from '../../identity/seal.ts'
import { Secret } from '../../shared/secret.ts'

/** The row that a secret belongs to: moved to another it does not open. */
interface Place {
  merchantId: number
  id: number
}

/** What the database keeps of an endpoint's secret: it must be read again, to sign with. */
export function sealWebhookSecret(master: MasterSecret, place: Place, secret: Secret): Buffer {
  return seal(master.sealingKey, Buffer.from(secret.reveal()), nameOf(place))
}

/** @throws Error where it was altered, or sealed for another row or under another key */
export function openWebhookSecret(master: MasterSecret, place: Place, sealed: Uint8Array): Secret {
  return new Secret(unseal(master.sealingKey, sealed, nameOf(place)).toString('utf8'))
}

function nameOf({ merchantId, id }: Place): string {
  return `webhook_endpoint:${merchantId}:${id}`
}
