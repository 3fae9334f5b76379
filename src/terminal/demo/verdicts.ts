import { formatXof } from '../../shared/money.ts'
import type { DemoChange } from './client.ts'
import type { Customer } from './customers.ts'

/** The result of one check of the demonstration. */
export interface DemoVerdict {
  isRight: boolean
  words: string
}

/** Lists the changes of a payment, in the words of `Customer.changes`. */
export function storyOf(reference: string, changes: readonly DemoChange[]): string[] {
  return changes
    .filter((change) => change.reference === reference)
    .map(({ status, failureReason, late }) =>
      [status, ...(late ? ['late'] : []), ...(failureReason ? [failureReason] : [])].join(' '),
    )
}

/** Checks that each payment had exactly the changes that its customer's number stands for. */
export function checkStories(
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
 * Checks that the changes came in order and none came twice. The log numbers all events of the merchant. A
 * new merchant has only changes of payments, so a gap means a missing change; a merchant that was used before
 * may have other events between.
 */
export function checkSequence(changes: readonly DemoChange[], isNew: boolean): DemoVerdict {
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

/** Checks that the balance grew by exactly the sum of the successful payments, late ones included. */
export function checkBalance(changes: readonly DemoChange[], before: number, after: number): DemoVerdict {
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
