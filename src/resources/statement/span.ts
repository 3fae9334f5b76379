import type { Span } from '../../ledger/statement.ts'
import { invalidInput } from '../../shared/input.ts'

/** The time of a statement. @throws DomainError INVALID_INPUT */
export function checkSpan({ from, to }: { from: Date; to?: Date | null | undefined }): Span {
  if (to && to < from) throw invalidInput([{ field: 'to', message: 'must not be before from' }])
  return { from, to: to ?? null }
}

/** What an entry is about, by its cause. */
export function subjectOf(cause: string): { transactionId: bigint | null; payoutId: bigint | null } {
  const [, kind, id = ''] = /^(transaction|payout):(\d+)$/.exec(cause) ?? []
  return {
    transactionId: kind === 'transaction' ? BigInt(id) : null,
    payoutId: kind === 'payout' ? BigInt(id) : null,
  }
}
