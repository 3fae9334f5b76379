import { setTimeout as sleep } from 'node:timers/promises'
import type { OperatorStatementLine } from '../../operators/operator.ts'
import type { OperatorRegistry } from '../../operators/registry.ts'
import type { Clock } from '../../shared/clock.ts'
import type { Provider } from '../../shared/providers.ts'

const dayMs = 24 * 60 * 60 * 1_000
/** The most days whose statements are read. Choice: after a loss of more days, statements are not enough. */
const daysMax = 400
const triesMax = 4
const pauseMs = 1_000
/** The longest time, in ms, to read one day. Choice: enough for a day with a million lines, page by page. */
const dayTimeoutMs = 15 * 60 * 1_000

/** The lines of one day of an operator's statement. */
export interface DayOfStatement {
  provider: Provider
  /** `2026-11-21` */
  day: string
  lines: readonly OperatorStatementLine[]
}

/**
 * Reads the statements of the operators from the day of `since` to today, day by day.
 * @param since service time
 * @param mayFail operators of which the first unreadable day, and those after it, are left out
 * @throws Error in one sentence where another operator does not give its statement
 */
export async function* readStatements(
  operators: OperatorRegistry,
  clock: Clock,
  since: Date,
  mayFail: readonly Provider[] = [],
): AsyncGenerator<DayOfStatement, void, void> {
  const first = Math.floor(since.getTime() / dayMs)
  const last = Math.floor(clock.now().getTime() / dayMs)
  if (last - first > daysMax)
    throw new Error(
      `The backup is ${last - first} days old. Statements are read for at most ${daysMax} days.`,
    )
  for (const { provider } of operators.list()) {
    for (let number = first; number <= last; number += 1) {
      const day = dayOf(new Date(number * dayMs))
      const read = readDay(operators, provider, day)
      const lines = await (mayFail.includes(provider) ? read.catch(() => null) : read)
      if (lines === null) break
      yield { provider, day, lines }
    }
  }
}

/** Returns the day of a time as statements name it: `2026-11-21`, in UTC. */
export function dayOf(time: Date): string {
  return time.toISOString().slice(0, 10)
}

/**
 * Reads one day of an operator's statement.
 * @throws Error in one sentence where the operator does not give it
 */
export async function readDay(
  operators: OperatorRegistry,
  provider: Provider,
  day: string,
): Promise<readonly OperatorStatementLine[]> {
  let why = 'it has none'
  for (let tries = 1; tries <= triesMax; tries += 1) {
    if (tries > 1) await sleep(pauseMs * 2 ** (tries - 2))
    const found = await operators.find(provider)?.statement(day, {
      deadline: new Date(Date.now() + dayTimeoutMs),
      priority: 'background',
      record: () => {},
    })
    if (found?.kind === 'statement') return found.lines
    why = found?.kind === 'unreachable' ? found.cause : 'it is not ready'
  }
  throw new Error(
    `${provider} gives no statement of ${day} (${why}). No money leaves until it does: run this again later.`,
  )
}
