import type { DomainError } from '../../shared/errors.ts'
import { invalidInput } from '../../shared/input.ts'

/** What stands in a cell: text, a number, or why nothing may be taken from it. */
export type TableCell = string | number | Unusable

/** Nothing that can be read as what it is for: whoever judges the field refuses it, in these words. */
export interface Unusable {
  unusable: string
}

/** A line of a table in which something stands, with the number that a spreadsheet shows beside it. */
export interface TableRow {
  line: number
  /** By column; what is empty may be missing. */
  cells: readonly (TableCell | undefined)[]
  /** People who look at the sheet do not see it. */
  isHidden: boolean
}

/** A refusal of the file as a whole. */
export function fileProblem(message: string): DomainError {
  return invalidInput([{ field: 'file', message }])
}
