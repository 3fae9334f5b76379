import { createHmac } from 'node:crypto'
import type { MasterSecret } from './secrets.ts'

/**
 * The kind of operation. The collections and deposits of a merchant share one set of references; payouts have
 * a set of their own.
 */
export type IdentityKind = 'collect' | 'disburse' | 'payout' | 'recipients'

/**
 * The source from which an identity is derived: the merchant's reference, the name of a request
 * (`IdempotentOperation.name`), or a payment link's slug and the reference of one attempt to pay by it.
 */
export type IdentitySource =
  | { merchantId: number; kind: IdentityKind; by: 'reference' | 'request'; name: string }
  | { merchantId: null; kind: 'collect'; by: 'link'; name: string }

/**
 * Derives the identity (UUID) under which a request is sent to an operator. The same source gives the same
 * UUID, so that a merchant who repeats a request after a restore cannot have it executed twice by an operator
 * that recognises duplicates. The kind is part of the identity: a collection and a disbursement must never
 * look like duplicates of each other. Without the master secret an identity can be neither predicted nor
 * linked to another.
 */
export function operatorIdentity(master: MasterSecret, source: IdentitySource): string {
  const { merchantId, kind, by, name } = source
  // The text has a version, and it is JSON so that no two sources give the same text.
  const text = JSON.stringify(['operator-identity:1', merchantId, kind, by, name])
  const bytes = createHmac('sha256', master.identityKey).update(text).digest()
  // The UUID has the form of a random one: operators check for version 4, and an HMAC looks random to them.
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x40, 6)
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8)
  const hex = bytes.toString('hex')
  return [
    [0, 8],
    [8, 12],
    [12, 16],
    [16, 20],
    [20, 32],
  ]
    .map(([from, to]) => hex.slice(from, to))
    .join('-')
}
