import type { EffectName } from './effects.ts'
import { factsAbout } from './facts.ts'
import type { OperatorKey } from './model.ts'
import type { PoolLine } from './pool-lines.ts'
import type { Facts, Played } from './rules.ts'
import type { SimulatorContext } from './context.ts'

const dayMs = 24 * 3_600_000

/** The movements of our float as a statement shows them. */
export interface StatementLines {
  readonly lines: readonly PoolLine[]
  /** The number of lines that the statement announces; more than it has where it was cut short. */
  readonly promised: number
}

/** Returns the movements of our float, changed by the faults in force. */
export function statementLines({ store, rules }: SimulatorContext, operator: OperatorKey): StatementLines {
  const all = store.book.poolLines(operator)
  // Without faults, the operations need not be read.
  if (!rules.haveStage('line')) return { lines: [...all], promised: all.length }
  const lines: PoolLine[] = []
  for (const line of all) {
    const operation = store.operationOf(line)
    const named = operation ? factsAbout(operation) : { operator, msisdn: '', clientReference: '' }
    const facts: Facts = { ...named, op: 'statement', key: `line ${line.seq}` }
    const played = rules.play('line', facts)
    if (played.some(({ effect }) => effect === 'stmt_truncate')) return { lines, promised: all.length }
    lines.push(...played.reduce(misstated, [line]))
  }
  return { lines, promised: lines.length }
}

function misstated(lines: PoolLine[], { effect, params }: Played): PoolLine[] {
  const change = misstatements[effect]
  return change ? lines.flatMap((line) => change(line, params)) : lines
}

const misstatements: Partial<Record<EffectName, (line: PoolLine, params: Played['params']) => PoolLine[]>> = {
  stmt_drop: () => [],
  stmt_duplicate: (line) => [line, line],
  // A movement of the same amount that belongs to no operation.
  stmt_extra: (line) => [line, { ...line, operation: null }],
  stmt_amount: (line, params) => {
    const less = BigInt(params['less'] ?? 0)
    return [{ ...line, amount: line.amount < 0n ? line.amount + less : line.amount - less }]
  },
  stmt_fee: (line, params) => [{ ...line, fee: line.fee - BigInt(params['more'] ?? 0) }],
  stmt_next_day: (line) => [{ ...line, at: line.at + dayMs }],
}
