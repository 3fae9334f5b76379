import { invalidInput } from '../shared/input.ts'
import { limits } from '../shared/limits.ts'

/** The paging arguments of a list. */
interface Page {
  first?: number | null | undefined
  last?: number | null | undefined
  offset?: number | null | undefined
}

/**
 * Judges the paging arguments of a list: a page has 1 to 100 items, the offset is 0 or more.
 * @returns the rows to pass over
 * @throws DomainError INVALID_INPUT that names the argument
 */
export function checkPage({ first, last, offset }: Page): number {
  const size = `must be from 1 to ${limits.pageSizeMax}`
  const outside = (value: number | null | undefined) =>
    value != null && (value < 1 || value > limits.pageSizeMax)
  const problems = [
    ...(outside(first) ? [{ field: 'first', message: size }] : []),
    ...(first != null && last != null ? [{ field: 'last', message: 'and first exclude each other' }] : []),
    ...(outside(last) ? [{ field: 'last', message: size }] : []),
    ...(offset != null && (offset < 0 || offset > limits.offsetMax)
      ? [{ field: 'offset', message: `must be from 0 to ${limits.offsetMax}` }]
      : []),
  ]
  if (problems.length > 0) throw invalidInput(problems)
  return offset ?? 0
}
