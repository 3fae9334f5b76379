import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Services } from '../../context.ts'

/**
 * Characters of the keyed digest (132 bits) in a receipt address: it cannot be guessed, and no table stores
 * it.
 */
const macLength = 22

/** Makes the address where the customer of a collection sees its state and, once it is paid, the receipt. */
export function receiptUrl(services: Pick<Services, 'access' | 'addresses'>, id: bigint): string {
  return `${services.addresses.publicUrl}/r/${id}.${macOf(services, String(id))}`
}

/**
 * Reads the last part of a receipt address. The time of the comparison does not depend on how much of a
 * forged address is right.
 * @returns the id of the transaction, or null where the service never made this address
 */
export function readReceipt(services: Pick<Services, 'access'>, token: string): bigint | null {
  const [, id = '', mac = ''] = /^([1-9]\d{0,17})\.([\w-]{22})$/.exec(token) ?? []
  const isOurs = id !== '' && timingSafeEqual(Buffer.from(mac), Buffer.from(macOf(services, id)))
  return isOurs ? BigInt(id) : null
}

function macOf({ access }: Pick<Services, 'access'>, id: string): string {
  return createHmac('sha256', access.master.receiptKey).update(id).digest('base64url').slice(0, macLength)
}
