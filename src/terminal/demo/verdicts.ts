import { formatXof } from '../../shared/money.ts'
import type { DemoChange } from './client.ts'
import type { Customer } from './customers.ts'

/** Whether something is as it must be. */
export interface DemoVerdict {
  isRight: boolean
  words: string
}

/** What happened to a payment, in the words of `Customer.changes`. */
export function storyOf(reference: string, changes: readonly DemoChange[]): string[] {
  return changes
    .filter((change) => change.reference === reference)
    .map(({ status, failureReason, late }) =>
      [status, ...(late ? ['late'] : []), ...(failureReason ? [failureReason] : [])].join(' '),
    )
}

/** Every customer did what the number says, and nothing else happened. */
export function judgeStories(
  changes: readonly DemoChange[],
  cast: ReadonlyMap<string, Customer>,
): DemoVerdict {
  const wrong = [...cast].flatMap(([reference, { phone, changes: expected }]) => {
    const story = storyOf(reference, changes).join(', ')
    return story === expected.join(', ')
      ? []
      : [`${phone}: ${story || 'nothing'} instead of ${expected.join(', ')}`]
  })
  const words = `${cast.size} payments went as their customers' numbers say`
  return { isRight: wrong.length === 0, words: wrong.length === 0 ? words : wrong.join('; ') }
}

/**
 * The changes came in order, none twice. The log counts every event of the merchant: those of a new merchant
 * are all changes of payments, so that none is missing; an account that was used before has others between.
 */
export function judgeSequence(changes: readonly DemoChange[], isNew: boolean): DemoVerdict {
  const wrong = changes.findIndex(({ sequence }, index) => {
    const before = changes[index - 1]?.sequence ?? 0
    return isNew ? sequence !== before + 1 : sequence <= before
  })
  if (wrong >= 0) {
    return { isRight: false, words: `Change ${wrong + 1} came as number ${changes[wrong]?.sequence}` }
  }
  const last = changes.at(-1)?.sequence ?? 0
  return {
    isRight: true,
    words: isNew
      ? `The changes count from 1 to ${last} without a gap`
      : `The changes came in order, up to ${last}`,
  }
}

/** The balance grew by what was paid, late money included, and by nothing else. */
export function judgeBalance(changes: readonly DemoChange[], before: number, after: number): DemoVerdict {
  const paid = changes
    .filter(({ status }) => status === 'success')
    .reduce((sum, { amount }) => sum + amount, 0)
  const [now, grown, then] = [after, paid, before].map((amount) => formatXof(amount))
  if (after - before !== paid) {
    return { isRight: false, words: `The balance is ${now}, but ${then} were there and ${grown} were paid` }
  }
  const above = before > 0 ? ` above the ${then} before` : ''
  return { isRight: true, words: `The balance is ${now}: exactly the ${grown} that were paid${above}` }
}
