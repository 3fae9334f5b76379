import type { Xof } from '../shared/money.ts'
import type { Provider } from '../shared/providers.ts'
import type { OperatorStatement, OperatorStatementLine } from './operator.ts'
import { movedAmountMax } from './wire-record.ts'

const dayMs = 24 * 60 * 60 * 1_000

/**
 * Builds a statement from its lines. The balances beside the first and the last line give the opening and
 * closing balances.
 */
export function buildStatement(
  provider: Provider,
  day: string,
  now: Date,
  sha256: string,
  lines: readonly OperatorStatementLine[],
): OperatorStatement {
  const [first, last] = [lines[0], lines.at(-1)]
  return {
    kind: 'statement',
    provider,
    day,
    opening: first?.balanceAfter === undefined ? undefined : first.balanceAfter - signedAmount(first),
    closing: last?.balanceAfter,
    complete: now.getTime() >= Date.parse(day) + dayMs,
    sha256,
    lines,
  }
}

const payments: ReadonlySet<OperatorStatementLine['type']> = new Set(['collect', 'disburse', 'reversal'])

/**
 * Returns the amount of a line; undefined if a payment is zero, or more than any payment can be. Then the
 * statement is unreadable, because no line may be left out. Lines that are no payments, such as transfers of
 * the float, have no such bound.
 */
export function lineAmount(type: OperatorStatementLine['type'], amount: Xof | undefined): Xof | undefined {
  if (amount === undefined || !payments.has(type)) return amount
  return amount > 0n && amount <= movedAmountMax ? amount : undefined
}

/** Returns the change of the float by a line: the signed amount, less the fee. */
function signedAmount(line: OperatorStatementLine): Xof {
  return (line.direction === 'credit' ? line.amount : -line.amount) - line.fee
}
