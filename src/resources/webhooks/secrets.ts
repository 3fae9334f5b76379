import type { MasterSecret } from '../../identity/secrets.ts'
import { encrypt, decrypt } from '../../identity/encrypt.ts'
import { Secret } from '../../shared/secret.ts'

/** The row that a secret belongs to: moved to another it does not open. */
interface EndpointKey {
  merchantId: number
  id: number
}

/** What the database keeps of an endpoint's secret: it must be read again, to sign with. */
export function encryptWebhookSecret(master: MasterSecret, endpoint: EndpointKey, secret: Secret): Buffer {
  return encrypt(master.encryptionKey, Buffer.from(secret.reveal()), nameOf(endpoint))
}

/** @throws Error where it was altered, or sealed for another row or under another key */
export function decryptWebhookSecret(
  master: MasterSecret,
  endpoint: EndpointKey,
  encrypted: Uint8Array,
): Secret {
  return new Secret(decrypt(master.encryptionKey, encrypted, nameOf(endpoint)).toString('utf8'))
}

function nameOf({ merchantId, id }: EndpointKey): string {
  return `webhook_endpoint:${merchantId}:${id}`
}
