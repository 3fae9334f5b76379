import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { Provider } from '../shared/providers.ts'

/**
 * The characters of the HMAC in an address: 132 bits, as hard to guess as a key, and short enough for an
 * address.
 */
const tokenLength = 22

/**
 * Returns the address at which an operator reports on one operation. The GSMA standard signs no callbacks,
 * and its callback about a failure names no transaction. So the address itself names the operation, and
 * proves that this service issued it.
 * @returns `{base}/operators/{provider}/callbacks/{operationId}.{token}`
 */
export function callbackAddress(
  base: string,
  provider: Provider,
  operationId: bigint | string,
  secret: KeyObject,
): string {
  const id = String(operationId)
  return `${base}/operators/${provider}/callbacks/${id}.${tokenOf(id, secret)}`
}

/**
 * Returns the address for an operator that sends signed webhooks about all operations to one address.
 * @returns `{base}/operators/{provider}/callbacks/webhook`
 */
export function webhookAddress(base: string, provider: Provider): string {
  return `${base}/operators/${provider}/callbacks/webhook`
}

/**
 * Reads the last part of a callback address. The time of the comparison does not depend on how many bytes of
 * a forged token are right.
 * @returns the operation that the address was made for, or null for an address that this service never issued
 */
export function readCallbackToken(pathToken: string, secret: KeyObject): string | null {
  const dot = pathToken.lastIndexOf('.')
  if (dot < 1) return null
  const id = pathToken.slice(0, dot)
  const presented = Buffer.from(pathToken.slice(dot + 1))
  const expected = Buffer.from(tokenOf(id, secret))
  return presented.length === expected.length && timingSafeEqual(presented, expected) ? id : null
}

function tokenOf(operationId: string, secret: KeyObject): string {
  return createHmac('sha256', secret).update(operationId).digest('base64url').slice(0, tokenLength)
}
