import type { Xof } from '../shared/money.ts'
import type { Provider } from '../shared/providers.ts'
import type { Statement, StatementLine } from './operator.ts'

const dayMs = 24 * 60 * 60 * 1_000

/**
 * Makes a statement of its lines; the balances at both ends follow from those the operator wrote beside the
 * lines.
 */
export function buildStatement(
  provider: Provider,
  day: string,
  now: Date,
  sha256: string,
  lines: readonly StatementLine[],
): Statement {
  const [first, last] = [lines[0], lines.at(-1)]
  return {
    kind: 'statement',
    provider,
    day,
    opening: first?.balanceAfter === undefined ? undefined : first.balanceAfter - movement(first),
    closing: last?.balanceAfter,
    complete: now.getTime() >= Date.parse(day) + dayMs,
    sha256,
    lines,
  }
}

/** What a line did to the float: its amount by its direction, less the fee. */
function movement(line: StatementLine): Xof {
  return (line.direction === 'credit' ? line.amount : -line.amount) - line.fee
}
