import type { Mutant } from './mutant.ts'
import { accessMutants } from './table/access.ts'
import { moneyMutants } from './table/money.ts'
import { operatorsMutants } from './table/operators.ts'
import { proofMutants } from './table/proof.ts'

/** Every planted bug of `npm run mutants`. */
export const mutants: readonly Mutant[] = [
  ...moneyMutants,
  ...operatorsMutants,
  ...accessMutants,
  ...proofMutants,
]
