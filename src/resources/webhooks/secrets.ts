import type { MasterSecret } from '../../identity/secrets/secrets.ts'
import { encrypt, decrypt } from '../../identity/secrets/encrypt.ts'
import { Secret } from '../../shared/secret.ts'

/** The row that a secret belongs to. In another row the secret cannot be decrypted. */
interface EndpointKey {
  merchantId: number
  id: number
}

/** Encrypts an endpoint's secret for the database. A hash is not enough: the secret signs deliveries. */
export function encryptWebhookSecret(master: MasterSecret, endpoint: EndpointKey, secret: Secret): Buffer {
  return encrypt(master.encryptionKey, Buffer.from(secret.reveal()), nameOf(endpoint))
}

/**
 * Decrypts an endpoint's secret.
 * @throws Error where it was altered, or encrypted for another row or with another key
 */
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
