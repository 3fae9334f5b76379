import { createHmac } from 'node:crypto'
import type { MasterSecret } from './secrets.ts'

/** What an operator is asked for: collections and deposits share their references, payouts have their own. */
export type IdentityKind = 'collect' | 'disburse' | 'payout' | 'recipients'

/**
 * What an identity is derived from: the merchant's reference, the name of a request
 * (`IdempotentOperation.name`), or a payment link's slug and the reference of one attempt to pay by it.
 */
export type IdentitySource =
  | { merchantId: number; kind: IdentityKind; by: 'reference' | 'request'; name: string }
  | { merchantId: null; kind: 'collect'; by: 'link'; name: string }

/**
 * Derives the identity under which an operator is asked: the same source gives the same UUID, so that a
 * merchant who repeats a request after a restore cannot have it executed twice by an operator that recognises
 * duplicates. The kind is part of it: a collection and a disbursement must never look like duplicates of each
 * other. Without the master secret nobody can predict or link identities.
 */
export function operatorIdentity(master: MasterSecret, source: IdentitySource): string {
  const { merchantId, kind, by, name } = source
  // Versioned, and JSON so that no two sources give the same text.
  const text = JSON.stringify(['operator-identity:1', merchantId, kind, by, name])
  const bytes = createHmac('sha256', master.identityKey).update(text).digest()
  // The form of a random UUID: operators check for version 4, and an HMAC is as random to them.
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
