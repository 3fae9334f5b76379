/** The kinds of things that a ledger entry may be about, as its origin names them (`recipient:7`). */
export type OriginKind = 'transaction' | 'payout' | 'batch' | 'recipient'

/** Returns the id of the thing that an entry is about, if that is of the kind; else null. */
export function idIn(origin: string, kind: OriginKind): bigint | null {
  const about = readOrigin(origin)
  return about?.kind === kind ? about.id : null
}

/** Reads the origin of an entry; null where the entry is about no payment, such as money for a sandbox. */
export function readOrigin(origin: string): { kind: OriginKind; id: bigint } | null {
  const [, kind, id] = /^(transaction|payout|batch|recipient):(\d+)$/.exec(origin) ?? []
  return kind === undefined || id === undefined ? null : { kind: kind as OriginKind, id: BigInt(id) }
}
