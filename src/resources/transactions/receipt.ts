import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Services } from '../../context.ts'

/** 132 bits of a keyed digest: nobody guesses it, and nothing is kept. */
const macLength = 22

/** Where the customer of a collection sees how it stands and, once it is paid, the receipt. */
export function receiptUrl(services: Pick<Services, 'access' | 'addresses'>, id: bigint): string {
  return `${services.addresses.publicUrl}/r/${id}.${evidenceJson(services, String(id))}`
}

/**
 * Reads the last part of such an address, in a time that does not depend on how much of a forgery is right.
 * @returns the transaction that it was made for, or null where we never made it
 */
export function readReceipt(services: Pick<Services, 'access'>, token: string): bigint | null {
  const [, id = '', mac = ''] = /^([1-9]\d{0,17})\.([\w-]{22})$/.exec(token) ?? []
  const isOurs = id !== '' && timingSafeEqual(Buffer.from(mac), Buffer.from(evidenceJson(services, id)))
  return isOurs ? BigInt(id) : null
}

function evidenceJson({ access }: Pick<Services, 'access'>, id: string): string {
  return createHmac('sha256', access.master.receiptKey).update(id).digest('base64url').slice(0, macLength)
}
