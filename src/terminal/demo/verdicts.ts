import { formatXof } from '../../shared/money.ts'
import type { Change } from './client.ts'
import type { Customer } from './customers.ts'

/** Whether something is as it must be. */
export interface Verdict {
  holds: boolean
  words: string
}

/** What happened to a payment, in the words of `Customer.changes`. */
export function storyOf(reference: string, changes: readonly Change[]): string[] {
  return changes
    .filter((change) => change.reference === reference)
    .map(({ status, failureReason, late }) =>
      [status, ...(late ? ['late'] : []), ...(failureReason ? [failureReason] : [])].join(' '),
    )
}

/** Every customer did what the number says, and nothing else happened. */
export function judgeStories(changes: readonly Change[], cast: ReadonlyMap<string, Customer>): Verdict {
  const wrong = [...cast].flatMap(([reference, { phone, changes: expected }]) => {
    const story = storyOf(reference, changes).join(', ')
    return story === expected.join(', ')
      ? []
      : [`${phone}: ${story || 'nothing'} instead of ${expected.join(', ')}`]
  })
  const words = `${cast.size} payments went as their customers' numbers say`
  return { holds: wrong.length === 0, words: wrong.length === 0 ? words : wrong.join('; ') }
}

/** The log counts 1, 2, 3, ... N: nothing was missed, repeated or out of order. */
export function judgeSequence(changes: readonly Change[]): Verdict {
  const gap = changes.findIndex(({ sequence }, index) => sequence !== index + 1)
  if (gap < 0) return { holds: true, words: `The changes count from 1 to ${changes.length} without a gap` }
  return { holds: false, words: `Change ${gap + 1} came as number ${changes[gap]?.sequence}` }
}

/** The balance grew by what was paid, late money included, and by nothing else. */
export function judgeBalance(changes: readonly Change[], before: number, after: number): Verdict {
  const paid = changes
    .filter(({ status }) => status === 'success')
    .reduce((sum, { amount }) => sum + amount, 0)
  const [now, grown, then] = [after, paid, before].map((amount) => formatXof(amount))
  if (after - before !== paid) {
    return { holds: false, words: `The balance is ${now}, but ${then} were there and ${grown} were paid` }
  }
  const above = before > 0 ? ` above the ${then} before` : ''
  return { holds: true, words: `The balance is ${now}: exactly the ${grown} that were paid${above}` }
}
