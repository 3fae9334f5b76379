import { operatorLabels } from './page-facts.ts'

const labels = new Map(operatorLabels)

/** The name by which people know an operator. */
export function operatorLabel(operator: string): string {
  return labels.get(operator) ?? operator
}

/** The operators that have a name of their own, each with it: a file for the service names them otherwise. */
export const namedOperators = operatorLabels.filter(([operator, label]) => operator !== label)
