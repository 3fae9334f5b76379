import type { DomainError } from '../../shared/errors.ts'
import { invalidInput } from '../../shared/input.ts'

/** The content of a cell: text, a number, or the reason why it cannot be used. */
export type TableCell = string | number | Unusable

/**
 * The content of a cell that cannot be used for its field: the check of the field refuses it with these
 * words.
 */
export interface Unusable {
  unusable: string
  /** The text in the cell, where there is one: it may be a title. */
  text?: string
}

/** A line of a table that is not empty, with the number that a spreadsheet shows beside it. */
export interface TableRow {
  line: number
  /** The cells by column; an empty one may be missing. */
  cells: readonly (TableCell | undefined)[]
  /** The reason why nothing of the line is paid: people do not see the line, or it is struck out. */
  unusable: string | null
}

/** The advice on the file to send, as a part of a sentence. */
export const expected = 'send the table as CSV or XLSX'

/** Makes the refusal of a whole file. */
export function fileProblem(message: string): DomainError {
  return invalidInput([{ field: 'file', message }])
}
